import { jsonOf, reachCodeOf, textOf } from '../answer.ts'
import { systemClock, timeout } from '../clock.ts'
import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from 'node:http'
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

export interface Exchange {
  status: number
  headers: IncomingHttpHeaders
  /** `undefined`: it is not JSON, or longer than 16 MiB. */
  json: unknown
}

/** Sends one request and reads the answer; redirects are answers like others. Throws `AdminApiError`. */
export async function exchange(
  url: string,
  {
    body,
    signal,
    timeoutMs = TIMEOUT_MS,
    ...options
  }: Pick<RequestOptions, 'method' | 'headers'> & {
    body: string | undefined
    signal: AbortSignal | undefined
    timeoutMs: number | undefined
  },
): Promise<Exchange> {
  const { request } = await (url.startsWith('https:') ? import('node:https') : import('node:http'))
  const late = timeout(systemClock, timeoutMs)
  const ends = AbortSignal.any(signal ? [signal, late.signal] : [late.signal])
  const sent = request(url, { ...options, signal: ends })
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.on('response', resolve).on('error', reject).end(body)
    })
    const { statusCode = 0, headers } = response
    return { status: statusCode, headers, json: await readJson(response) }
  } catch (cause) {
    if (signal?.aborted) throw new AdminApiError('Aborted.', 'aborted', { cause })
    const reason = late.signal.aborted ? 'it did not answer in time' : reachCodeOf(cause, FAILED)
    const message = `${new URL(url).origin} cannot be reached: ${reason}.`
    throw new AdminApiError(message, 'unreachable', { cause })
  } finally {
    late.cancel()
  }
}

/** @param root - path of the admin API, to tell where something else answers. */
export function refusalOf({ status, json }: Exchange, root: string): AdminApiError {
  if (!isProblem(json)) {
    const message = `${root} answers ${status}, but it is not an admin API. Is this the base URL of the service?`
    return new AdminApiError(message, 'not_an_admin_api', { status })
  }
  return new AdminApiError(json.title, json.code, { status, problem: json })
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

export type QueryValues = { [name: string]: string | number | boolean | string[] | undefined }

export function queryText(query: QueryValues): string {
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

/** A newer or older server may have other fields besides. */
export function isAnswer(answer: unknown, field: PropertyKey | undefined): boolean {
  const isObject = typeof answer === 'object' && answer !== null && !Array.isArray(answer)
  return isObject && (field === undefined || Object.hasOwn(answer, field))
}
