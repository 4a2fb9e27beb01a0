import { exchange, isAnswer, queryText, refusalOf, rootOf, type QueryValues } from './exchange.ts'
// Types alone: whoever asks has no need of what the server reads with.
import type { OperationName as Name, Operations, Settings } from './operations.ts'

export type * from './operations.ts'
export { AdminApiError } from './exchange.ts'

type Answer<N extends Name> = Operations[N]['answer']
type Body<N extends Name> = Operations[N]['body']

/** An answer with the ETag of the settings that it tells. */
export interface Tagged<T> {
  answer: T
  etag: string | undefined
}

export interface ClientOptions {
  /** How long to wait for one answer, in milliseconds; 60,000 by default. A test mail or `runDoctor` may take 35 s. */
  timeoutMs?: number
  /** Called with the time that the server tells with each answer, to the second. */
  onServerTime?(time: Date): void
}

export interface CallOptions {
  /** Ends the request: it throws with the code `aborted`. The server may have done the work. */
  signal?: AbortSignal
}

/** How settings are changed. */
export interface SettingsOptions extends CallOptions {
  /** Everything is checked, and nothing applied. */
  dryRun?: boolean
  /** Only while the settings still have this ETag; otherwise it throws with the code `stale_settings`. */
  ifMatch?: string | undefined
}

export interface PutOptions extends SettingsOptions {
  /** Names of settings that lose their value in the same step. */
  unset?: string[]
}

/** Where each operation is, and a field that all of its answers have, to tell them from answers of something else. */
const OPERATIONS = {
  getSettings: ['GET /settings', 'password_reset_expiration'],
  settingsHistory: ['GET /settings/history', 'versions'],
  putSettings: ['PUT /settings', 'password_reset_expiration'],
  unsetSettings: ['POST /settings/unset', 'password_reset_expiration'],
  testMail: ['POST /mail/test', 'checks'],
  previewMail: ['GET /mail/preview', 'subject'],
  mailOutcome: ['GET /mail/outcome', 'state'],
  runDoctor: ['POST /doctor', 'checks'],
  userStatus: ['POST /users/status', 'username'],
  sendReset: ['POST /users/send-reset', 'mail_id'],
  /** Throws with the code `has_password` where there is nothing to invite to, and likewise for other reasons. */
  inviteUser: ['POST /users/invite', 'mail_id'],
  sendVerification: ['POST /users/send-verification', 'mail_id'],
  endSessions: ['POST /users/end-sessions', undefined],
  verifyUser: ['POST /users/verify', 'changed'],
  unverifyUser: ['POST /users/unverify', 'changed'],
  /** Erases the records about an account; the user and its sessions stay. */
  forgetUser: ['POST /users/forget', 'under_way'],
  listOutbox: ['GET /outbox', 'mails'],
  /** All that is known of a mail. */
  showMail: ['GET /outbox/mail', 'history'],
  retryMails: ['POST /outbox/retry', 'changed'],
  purgeMails: ['POST /outbox/purge', 'changed'],
  listAudit: ['GET /audit', 'events'],
  explainLink: ['POST /links/explain', 'state'],
  rotateKeys: ['POST /keys/rotate', 'resealed'],
} as const satisfies {
  [N in Name]: readonly [Operations[N]['route'], RequiredKey<Answer<N>> | undefined]
}

type Table = typeof OPERATIONS
type Asking = {
  [N in keyof Table as N extends OnSettings ? never : N]: (
    ...asked: [
      ...(N extends Unasked ? [input?: Input<N>] : [input: Input<N>]),
      options?: CallOptions,
    ]
  ) => Promise<Answer<N>>
}
/** They answer an ETag, or take nothing. */
type OnSettings = 'getSettings' | 'settingsHistory' | 'putSettings' | 'unsetSettings' | 'rotateKeys'
/** They need to be told nothing. */
type Unasked = 'runDoctor' | 'listOutbox' | 'listAudit'
type Input<N extends Name> = Body<N> extends undefined ? Operations[N]['query'] : Body<N>

/** The admin API as functions; each throws `AdminApiError`. Times are ISO 8601. */
export interface AdminClient extends Asking {
  getSettings(options?: CallOptions): Promise<Tagged<Answer<'getSettings'>>>
  /** The versions that are kept, newest first. Secrets are in none of them. */
  settingsHistory(options?: CallOptions): Promise<Tagged<Answer<'settingsHistory'>>>
  /** All keys are checked, then all are applied, or none. `***` keeps a secret. */
  putSettings(settings: Settings, options?: PutOptions): Promise<Tagged<Answer<'putSettings'>>>
  /** Gives settings their defaults back. */
  unsetSettings(keys: string[], options?: SettingsOptions): Promise<Tagged<Answer<'unsetSettings'>>>
  rotateKeys(options?: CallOptions): Promise<Answer<'rotateKeys'>>
}

/**
 * Speaks to the admin API of a service. Redirects are not followed, as the token would go with them.
 *
 * @param url - base URL of the service, without the path of the admin API.
 * @param token - the fixed bearer token, or a JWT.
 * @param adminPath - as in the options of the service.
 * @throws TypeError where the URL is not http or https, or the token is none.
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
  const { timeoutMs, onServerTime } = options
  const root = rootOf(url) + adminPath
  // A host in JavaScript may give what an environment does not have.
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    throw new TypeError('token must be ASCII without spaces, and not empty')

  const call = async <N extends Name>(
    name: N,
    { query = {}, body, ifMatch, signal }: Call,
  ): Promise<Tagged<Answer<N>>> => {
    const [route, field] = OPERATIONS[name]
    const [method, path = ''] = route.split(' ')
    const answered = await exchange(`${root}${path}${queryText(query)}`, {
      method,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
      timeoutMs,
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json, application/problem+json',
        'user-agent': 'oidc-account-flows',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(ifMatch !== undefined && { 'if-match': ifMatch }),
      },
    })
    const { status, headers, json } = answered
    if (headers.date && Date.parse(headers.date)) onServerTime?.(new Date(headers.date))
    if (status < 200 || status >= 300 || !isAnswer(json, field)) throw refusalOf(answered, root)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- that the server answers as described is tested there
    return { answer: json as Answer<N>, etag: headers.etag }
  }
  const asking = Object.entries(OPERATIONS).map(([name, [route]]) => {
    const given = route.startsWith('GET') ? 'query' : 'body'
    const ask = async (input: object = {}, options: CallOptions = {}) =>
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is a name of the table
      (await call(name as Name, { ...options, [given]: input })).answer
    return [name, ask]
  })
  return {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the type is made of the table
    ...(Object.fromEntries(asking) as Asking),
    getSettings: (options = {}) => call('getSettings', options),
    settingsHistory: (options = {}) => call('settingsHistory', options),
    putSettings: (body, { dryRun, unset, ...options } = {}) =>
      call('putSettings', { ...options, query: { unset, dry_run: dryRun }, body }),
    unsetSettings: (key, { dryRun, ...options } = {}) =>
      call('unsetSettings', { ...options, query: { key, dry_run: dryRun } }),
    rotateKeys: async (options = {}) => (await call('rotateKeys', options)).answer,
  }
}

type RequiredKey<T> = { [K in keyof T]-?: {} extends Pick<T, K> ? never : K }[keyof T]

interface Call extends CallOptions {
  query?: QueryValues
  body?: unknown
  ifMatch?: string | undefined
}
