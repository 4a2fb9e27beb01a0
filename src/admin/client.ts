import type { IncomingMessage, RequestOptions } from 'node:http'
import { systemClock, timeout } from '../clock.ts'
import { isJsonObject, isPath, jsonOf, must, reachCodeOf, textOf } from '../errors.ts'
import type { Problem } from './operation.ts'
// Only types: a client does not need the server's schemas.
import type { OperationName as Name, Operations, Settings } from './all-operations.ts'
import { ROUTES } from './routes.ts'

export type * from './all-operations.ts'

/** The admin API refused a request, or could not be reached. */
export class AdminApiError extends Error {
  /** The `code` of the problem; or `unreachable`, `aborted`, or `not_an_admin_api` if something else answered. */
  readonly code: string
  /** Status of the answer; `undefined`: no answer came. */
  readonly status: number | undefined
  /** What the server says is wrong; `undefined`: it did not answer like an admin API. */
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

export interface ClientOptions {
  /** How long to wait for one answer, in milliseconds; 60,000 by default. A test mail or `runDoctor` may take 35 s. */
  timeoutMs?: number
  /** Called with the server's time of each answer, to the second. */
  onServerTime?(time: Date): void
}

type Answer<N extends Name> = Operations[N]['answer']
type Body<N extends Name> = Operations[N]['body']

/** An answer about settings, with their ETag. */
export interface Tagged<T> {
  answer: T
  etag: string | undefined
}

export interface CallOptions {
  /** Ends the request, which then throws with the code `aborted`. The server may have done the work. */
  signal?: AbortSignal
}

/** How settings are changed. */
export interface SettingsOptions extends CallOptions {
  /** Checks everything, and applies nothing. */
  dryRun?: boolean
  /** The change is made only while the settings have this ETag; otherwise it throws with the code `stale_settings`. */
  ifMatch?: string | undefined
}

export interface PutOptions extends SettingsOptions {
  /** Names of settings that lose their value in the same step. */
  unset?: string[]
}

type Asking = {
  [N in Exclude<Name, OnSettings>]: (
    ...asked: N extends Unasked
      ? [input?: Input<N>, options?: CallOptions]
      : [input: Input<N>, options?: CallOptions]
  ) => Promise<Answer<N>>
}
/** Operations that answer an ETag, or have no input. */
type OnSettings = 'getSettings' | 'settingsHistory' | 'putSettings' | 'unsetSettings' | 'rotateKeys'
/** Operations whose input is optional. */
type Unasked = 'runDoctor' | 'listOutbox' | 'listAudit'
type Input<N extends Name> = Body<N> extends undefined ? Operations[N]['query'] : Body<N>

/** The admin API as functions; each throws `AdminApiError`. Times are ISO 8601. */
export interface AdminClient extends Asking {
  getSettings(options?: CallOptions): Promise<Tagged<Answer<'getSettings'>>>
  /** The kept versions, newest first. They hold no secrets. */
  settingsHistory(options?: CallOptions): Promise<Tagged<Answer<'settingsHistory'>>>
  /** Checks all keys, then applies all or none. `***` keeps a secret. */
  putSettings(settings: Settings, options?: PutOptions): Promise<Tagged<Answer<'putSettings'>>>
  /** Gives settings their defaults back. */
  unsetSettings(keys: string[], options?: SettingsOptions): Promise<Tagged<Answer<'unsetSettings'>>>
  rotateKeys(options?: CallOptions): Promise<Answer<'rotateKeys'>>
}

/**
 * Speaks to the admin API of a service. It follows no redirects, because the token would go with them.
 *
 * @param url - base URL of the service, without the path of the admin API.
 * @param token - the fixed bearer token, or a JWT.
 * @param adminPath - as in the options of the service.
 * @throws TypeError if the URL is not http or https, the token is not visible ASCII, or the path is not like `/admin/api`.
 * @example
 * const admin = createAdminClient('https://login.example.com', process.env.ACCOUNT_FLOWS_TOKEN ?? '')
 * await admin.putSettings({ smtp_host: 'mail.example.com', smtp_port: '587' })
 */
export function createAdminClient(
  url: string,
  token: string,
  adminPath = '/admin/api',
  options: ClientOptions = {},
): AdminClient {
  const root = rootOf(url) + adminPath
  // Otherwise it could name another host, which would get the token.
  must(
    adminPath && isPath(adminPath),
    'adminPath must start with /, not end with /, and have plain segments',
  )
  // A host in JavaScript may pass `undefined`.
  const isToken = typeof token === 'string' && /^[\x21-\x7e]+$/.test(token)
  must(isToken, 'token must be ASCII without spaces, and not empty')

  async function call<N extends Name>(
    name: N,
    { query = {}, body }: { query?: object; body?: object },
    { ifMatch, signal }: SettingsOptions = {},
  ): Promise<Tagged<Answer<N>>> {
    const [route, field] = ROUTES[name]
    const [method, path = ''] = route.split(' ')
    const sent = {
      authorization: `Bearer ${token}`,
      accept: 'application/json, application/problem+json',
      'user-agent': 'oidc-account-flows',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(ifMatch !== undefined && { 'if-match': ifMatch }),
    }
    const request = { method, headers: sent, timeout: options.timeoutMs, signal }
    const text = body && JSON.stringify(body)
    const { status, headers, json } = await answered(root + path + queryText(query), request, text)
    const time = new Date(headers.date ?? '')
    if (time.getTime()) options.onServerTime?.(time)
    const isDone = status >= 200 && status < 300 && isJsonObject(json)
    // The server's tests show that it answers as described. A newer or older server may add other fields.
    if (isDone && (field === undefined || Object.hasOwn(json, field)))
      return { answer: json, etag: headers.etag }
    if (isProblem(json)) throw new AdminApiError(json.title, json.code, { status, problem: json })
    const message = `${root} answers ${status}, but it is not an admin API. Is this the base URL of the service?`
    throw new AdminApiError(message, 'not_an_admin_api', { status })
  }
  const asking = Object.entries(ROUTES).map(([name, [route]]) => {
    const given = route.startsWith('GET') ? 'query' : 'body'
    const ask = async (input: object = {}, options?: CallOptions) =>
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is a name of the table
      (await call(name as Name, { [given]: input }, options)).answer
    return [name, ask]
  })
  return {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type is made of the table
    ...(Object.fromEntries(asking) as Asking),
    getSettings: (options) => call('getSettings', {}, options),
    settingsHistory: (options) => call('settingsHistory', {}, options),
    putSettings: (body, options = {}) => {
      const { dryRun, unset } = options
      return call('putSettings', { query: { unset, dry_run: dryRun }, body }, options)
    },
    unsetSettings: (key, options = {}) =>
      call('unsetSettings', { query: { key, dry_run: options.dryRun } }, options),
    rotateKeys: async (options) => (await call('rotateKeys', {}, options)).answer,
  }
}

/** Longer than the longest check of the server. */
const TIMEOUT_MS = 60_000
const FAILED = 'the connection failed'
const MAX_ANSWER_BYTES = 16 * 1_048_576

/** A redirect is an answer like any other. Throws `AdminApiError`. */
async function answered(url: string, asked: RequestOptions, body: string | undefined) {
  const { timeout: limitMs = TIMEOUT_MS, signal: stop, ...rest } = asked
  const { request } = await (url.startsWith('https:') ? import('node:https') : import('node:http'))
  const { signal, cancel } = timeout(systemClock, limitMs, stop)
  const sent = request(url, { ...rest, signal })
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      sent.on('response', resolve).on('error', reject).end(body)
    })
    const { statusCode: status = 0, headers } = response
    return { status, headers, json: await readJson(response) }
  } catch (cause) {
    if (stop?.aborted) throw new AdminApiError('Aborted.', 'aborted', { cause })
    const reason = signal.aborted ? 'it did not answer in time' : reachCodeOf(cause, FAILED)
    const message = `${new URL(url).origin} cannot be reached: ${reason}.`
    throw new AdminApiError(message, 'unreachable', { cause })
  } finally {
    cancel()
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
  const { errors = [], candidates = [] } = Object(answer)
  return (
    isListOf([answer], ['title', 'code']) &&
    isListOf(errors, ['key', 'expected', 'got']) &&
    isListOf(candidates, ['id', 'username'])
  )
}

function isListOf(value: unknown, texts: string[]): boolean {
  const isOne = (item: unknown) =>
    texts.every((name) => typeof Reflect.get(Object(item), name) === 'string')
  return Array.isArray(value) && value.every(isOne)
}

function queryText(query: object): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    for (const one of [value].flat()) if (one !== undefined) given.append(name, String(one))
  return given.size === 0 ? '' : `?${given.toString()}`
}

/** @throws TypeError if it is not the URL of a service. */
function rootOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const isHttp = parsed && /^https?:$/.test(parsed.protocol)
  must(isHttp, 'url must be an absolute http or https address')
  const { href, search, hash, username, password } = parsed
  const isBare = !search && !hash && !username && !password
  must(isBare, 'url must have no query, fragment or credentials')
  return href.replace(/(?<!\/)\/+$/, '')
}
