import { isJsonObject, jsonOf, reachCodeOf, textOf } from '../errors.ts'
import { systemClock, timeout } from '../clock.ts'
import type { IncomingMessage, RequestOptions } from 'node:http'
import type { Problem } from './operation.ts'

/** Longer than the longest check of the server. */
const TIMEOUT_MS = 60_000
const FAILED = 'the connection failed'
const MAX_ANSWER_BYTES = 16 * 1_048_576

/** The admin API was reached and refused, or could not be reached. */
export class AdminApiError extends Error {
  /** That of the problem (`code`), or `unreachable`, `aborted`, or `not_an_admin_api` where something else answered. */
  readonly code: string
  /** Status of the answer; `undefined`: there was none. */
  readonly status: number | undefined
  /** What the server said is wrong; `undefined` where it did not answer as an admin API does. */
  readonly problem: Problem | undefined

  constructor(
    message: string,
    code: string,
    from: { problem?: Problem; status?: number; cause?: unknown } = {},
  ) {
    super(message, { cause: from.cause })
    this.name = 'AdminApiError'
    this.code = code
    this.status = from.status
    this.problem = from.problem
  }
}

export type QueryValues = { [name: string]: string | number | boolean | string[] | undefined }

export interface ClientOptions {
  /** How long to wait for one answer, in milliseconds; 60,000 by default. A test mail or `runDoctor` may take 35 s. */
  timeoutMs?: number
  /** Called with the time that the server tells with each answer, to the second. */
  onServerTime?(time: Date): void
}

interface Question extends ClientOptions, Pick<RequestOptions, 'method' | 'headers'> {
  path: string
  query: QueryValues
  /** Sent as JSON; `undefined`: nothing is. */
  body: unknown
  /** What every answer has; `undefined`: it may have nothing. A newer or older server may have other fields besides. */
  field: PropertyKey | undefined
  signal: AbortSignal | undefined
}

/** Redirects are answers like others. Throws `AdminApiError`. */
export async function exchange(root: string, question: Question) {
  const { field, onServerTime } = question
  const { status, headers, json } = await answered(root, question)
  const time = new Date(headers.date ?? '')
  if (time.getTime()) onServerTime?.(time)
  const isDone = status >= 200 && status < 300
  if (isDone && isJsonObject(json) && (field === undefined || Object.hasOwn(json, field)))
    return { answer: json, etag: headers.etag }
  if (isProblem(json)) throw new AdminApiError(json.title, json.code, { status, problem: json })
  const message = `${root} answers ${status}, but it is not an admin API. Is this the base URL of the service?`
  throw new AdminApiError(message, 'not_an_admin_api', { status })
}

async function answered(root: string, question: Question) {
  const { path, query, body, signal, timeoutMs = TIMEOUT_MS, method, headers } = question
  const text = body === undefined ? undefined : JSON.stringify(body)
  const { request } = await (root.startsWith('https:') ? import('node:https') : import('node:http'))
  const end = timeout(systemClock, timeoutMs, signal)
  const options = { method, headers, signal: end.signal }
  const sent = request(root + path + queryText(query), options)
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.on('response', resolve).on('error', reject).end(text)
    })
    const { statusCode: status = 0, headers } = response
    return { status, headers, json: await readJson(response) }
  } catch (cause) {
    if (signal?.aborted) throw new AdminApiError('Aborted.', 'aborted', { cause })
    const reason = end.signal.aborted ? 'it did not answer in time' : reachCodeOf(cause, FAILED)
    const message = `${new URL(root).origin} cannot be reached: ${reason}.`
    throw new AdminApiError(message, 'unreachable', { cause })
  } finally {
    end.cancel()
  }
}

async function readJson(response: IncomingMessage): Promise<unknown> {
  if (!/^application\/(problem\+)?json\b/.test(response.headers['content-type'] ?? '')) {
    response.destroy()
    return undefined
  }
  return jsonOf((await textOf({ body: response }, MAX_ANSWER_BYTES)) ?? '')
}

function isProblem(answer: unknown): answer is Problem {
  const field = (name: string): unknown => Reflect.get(Object(answer), name)
  return (
    typeof field('title') === 'string' &&
    typeof field('code') === 'string' &&
    isListOf(field('errors'), ['key', 'expected', 'got']) &&
    isListOf(field('candidates'), ['id', 'username'])
  )
}

function isListOf(value: unknown, texts: string[]): boolean {
  const isOne = (item: unknown) =>
    texts.every((name) => typeof Reflect.get(Object(item), name) === 'string')
  return value === undefined || (Array.isArray(value) && value.every(isOne))
}

function queryText(query: QueryValues): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const one of [value].flat()) given.append(name, String(one))
  }
  return given.size === 0 ? '' : `?${given.toString()}`
}

/** @throws TypeError where it is not the URL of a service. */
export function rootOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || !/^https?:$/.test(parsed.protocol)) {
    throw new TypeError('url must be an absolute http or https address')
  }
  if (parsed.search || parsed.hash || parsed.username || parsed.password) {
    throw new TypeError('url must have no query, fragment or credentials')
  }
  return parsed.href.replace(/(?<!\/)\/+$/, '')
}
