import { operations, type Operation } from './operations.ts'
import { answerFields } from './answer-fields.ts'
import { exchange, ExchangeError, type Exchange } from './exchange.ts'
import type { Operations, Problem, Settings } from './api-types.ts'

export type * from './api-types.ts'

type Name = keyof Operations
type Answer<N extends Name> = Operations[N]['answer']
type Query<N extends Name> = Operations[N]['query']
type Body<N extends Name> = Operations[N]['body']

/** An answer with the ETag of the settings that it tells. */
export interface Tagged<T> {
  answer: T
  etag: string | undefined
}

export interface CallOptions {
  /** Ends the request: it throws with the code `aborted`. The server may have done what was asked. */
  signal?: AbortSignal
}

export interface SettingsOptions extends CallOptions {
  /** Everything is checked, and nothing applied. */
  dryRun?: boolean
  /** Only while the settings still have this ETag; otherwise it throws with the code `stale_settings`. */
  ifMatch?: string | undefined
}

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

/** The admin API as functions; each throws `AdminApiError`. Times are ISO 8601. */
export interface AdminClient {
  getSettings(options?: CallOptions): Promise<Tagged<Answer<'getSettings'>>>
  /** All keys are checked, then all are applied, or none. `***` keeps a secret. */
  putSettings(settings: Settings, options?: SettingsOptions): Promise<Tagged<Answer<'putSettings'>>>
  /** Gives settings their defaults back. */
  unsetSettings(keys: string[], options?: SettingsOptions): Promise<Tagged<Answer<'unsetSettings'>>>
  testMail(body: Body<'testMail'>, options?: CallOptions): Promise<Answer<'testMail'>>
  previewMail(query: Query<'previewMail'>, options?: CallOptions): Promise<Answer<'previewMail'>>
  mailOutcome(query: Query<'mailOutcome'>, options?: CallOptions): Promise<Answer<'mailOutcome'>>
  runDoctor(body?: Body<'runDoctor'>, options?: CallOptions): Promise<Answer<'runDoctor'>>
  userStatus(account: Body<'userStatus'>, options?: CallOptions): Promise<Answer<'userStatus'>>
  sendReset(account: Body<'sendReset'>, options?: CallOptions): Promise<Answer<'sendReset'>>
  sendVerification(
    account: Body<'sendVerification'>,
    options?: CallOptions,
  ): Promise<Answer<'sendVerification'>>
  endSessions(account: Body<'endSessions'>, options?: CallOptions): Promise<Answer<'endSessions'>>
  /** Erases what is recorded of an account; the user and what it is signed in with stay. */
  forgetUser(account: Body<'forgetUser'>, options?: CallOptions): Promise<Answer<'forgetUser'>>
  listOutbox(query?: Query<'listOutbox'>, options?: CallOptions): Promise<Answer<'listOutbox'>>
  retryMails(which: Body<'retryMails'>, options?: CallOptions): Promise<Answer<'retryMails'>>
  purgeMails(which: Body<'purgeMails'>, options?: CallOptions): Promise<Answer<'purgeMails'>>
  listAudit(query?: Query<'listAudit'>, options?: CallOptions): Promise<Answer<'listAudit'>>
  explainLink(body: Body<'explainLink'>, options?: CallOptions): Promise<Answer<'explainLink'>>
  rotateKeys(options?: CallOptions): Promise<Answer<'rotateKeys'>>
}

/**
 * Speaks to `{url}/admin/api`. Redirects are not followed, as the token would go with them.
 *
 * @param url - base URL of the service, without `/admin/api`.
 * @param token - the fixed bearer token, or a JWT.
 * @throws TypeError where the URL is not http or https, or the token is none.
 * @example
 * const admin = createAdminClient('https://login.example.com', process.env.ACCOUNT_FLOWS_TOKEN ?? '')
 * await admin.putSettings({ smtp_host: 'mail.example.com', smtp_port: '587' })
 */
export function createAdminClient(url: string, token: string): AdminClient {
  const root = rootOf(url)
  // A host in JavaScript may give what an environment does not have.
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    throw new TypeError('token must be ASCII without spaces, and not empty')

  async function call<N extends Name>(
    name: N,
    { query = {}, body, ifMatch, signal }: Call = {},
  ): Promise<Tagged<Answer<N>>> {
    const { method, path }: Operation = operations[name]
    const answered = await reach(`${root}${path}${queryText(query)}`, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
      ...(signal && { signal }),
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json, application/problem+json',
        'user-agent': 'oidc-account-flows',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(ifMatch !== undefined && { 'if-match': ifMatch }),
      },
    })
    const { status, headers, json } = answered
    if (status >= 200 && status < 300 && isAnswer(json, answerFields[name])) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- that the server answers as described is tested there
      return { answer: json as Answer<N>, etag: headers.etag }
    }
    throw refusalOf(answered, root)
  }

  const answerOf =
    <N extends Name>(name: N) =>
    async (body?: unknown, options: CallOptions = {}) =>
      (await call(name, { ...options, body })).answer
  const answerTo =
    <N extends Name>(name: N) =>
    async (query: QueryValues = {}, options: CallOptions = {}) =>
      (await call(name, { ...options, query })).answer

  return {
    getSettings: (options) => call('getSettings', options),
    putSettings: (body, { dryRun, ...options } = {}) =>
      call('putSettings', { ...options, query: { dry_run: dryRun }, body }),
    unsetSettings: (key, { dryRun, ...options } = {}) =>
      call('unsetSettings', { ...options, query: { key, dry_run: dryRun } }),
    testMail: answerOf('testMail'),
    previewMail: answerTo('previewMail'),
    mailOutcome: answerTo('mailOutcome'),
    runDoctor: (body = {}, options = {}) => answerOf('runDoctor')(body, options),
    userStatus: answerOf('userStatus'),
    sendReset: answerOf('sendReset'),
    sendVerification: answerOf('sendVerification'),
    endSessions: answerOf('endSessions'),
    forgetUser: answerOf('forgetUser'),
    listOutbox: answerTo('listOutbox'),
    retryMails: answerOf('retryMails'),
    purgeMails: answerOf('purgeMails'),
    listAudit: answerTo('listAudit'),
    explainLink: answerOf('explainLink'),
    rotateKeys: (options) => answerOf('rotateKeys')(undefined, options),
  }
}

interface Call extends CallOptions {
  query?: QueryValues
  body?: unknown
  ifMatch?: string | undefined
}

function rootOf(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (!parsed || !/^https?:$/.test(parsed.protocol)) {
    throw new TypeError('url must be an absolute http or https address')
  }
  if (parsed.search || parsed.hash || parsed.username || parsed.password) {
    throw new TypeError('url must have no query, fragment or credentials')
  }
  return `${parsed.href.replace(/(?<!\/)\/+$/, '')}/admin/api`
}

type QueryValues = { [name: string]: string | number | boolean | string[] | undefined }

function queryText(query: QueryValues): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const one of [value].flat()) given.append(name, String(one))
  }
  return given.size === 0 ? '' : `?${given.toString()}`
}

async function reach(url: string, request: Parameters<typeof exchange>[1]): Promise<Exchange> {
  try {
    return await exchange(url, request)
  } catch (cause) {
    if (!(cause instanceof ExchangeError)) throw cause
    if (cause.failure === 'aborted') throw new AdminApiError('Aborted.', 'aborted', { cause })
    const { origin } = new URL(url)
    const reason = cause.failure === 'late' ? 'it did not answer in time' : codeOf(cause.cause)
    throw new AdminApiError(`${origin} cannot be reached: ${reason}.`, 'unreachable', { cause })
  }
}

function codeOf(error: unknown): string {
  const code: unknown = Reflect.get(Object(error), 'code')
  return typeof code === 'string' ? code : 'the connection failed'
}

function refusalOf({ status, json }: Exchange, root: string): AdminApiError {
  if (!isProblem(json)) {
    const message = `${root} answers ${status}, and not as an admin API does. Is this the base URL of the service?`
    return new AdminApiError(message, 'not_an_admin_api', { status })
  }
  return new AdminApiError(json.title, json.code, { status, problem: json })
}

/** A newer or older server may have other fields besides. */
function isAnswer(answer: unknown, fields: readonly string[]): boolean {
  const isObject = typeof answer === 'object' && answer !== null && !Array.isArray(answer)
  return isObject && (fields.length === 0 || fields.some((field) => Object.hasOwn(answer, field)))
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
