import { exchange, isAnswer, queryText, refusalOf, rootOf, type QueryValues } from './exchange.ts'
// Types alone: whoever asks has no need of what the server reads with.
import type { OperationName as Name, Operations, Settings } from './description.ts'

export type * from './description.ts'
export { AdminApiError } from './exchange.ts'

type Answer<N extends Name> = Operations[N]['answer']
type Query<N extends Name> = Operations[N]['query']
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

/** The admin API as functions; each throws `AdminApiError`. Times are ISO 8601. */
export interface AdminClient {
  getSettings(options?: CallOptions): Promise<Tagged<Answer<'getSettings'>>>
  /** The versions that are kept, newest first. Secrets are in none of them. */
  settingsHistory(options?: CallOptions): Promise<Tagged<Answer<'settingsHistory'>>>
  /** All keys are checked, then all are applied, or none. `***` keeps a secret. */
  putSettings(settings: Settings, options?: PutOptions): Promise<Tagged<Answer<'putSettings'>>>
  /** Gives settings their defaults back. */
  unsetSettings(keys: string[], options?: SettingsOptions): Promise<Tagged<Answer<'unsetSettings'>>>
  testMail(body: Body<'testMail'>, options?: CallOptions): Promise<Answer<'testMail'>>
  previewMail(query: Query<'previewMail'>, options?: CallOptions): Promise<Answer<'previewMail'>>
  mailOutcome(query: Query<'mailOutcome'>, options?: CallOptions): Promise<Answer<'mailOutcome'>>
  runDoctor(body?: Body<'runDoctor'>, options?: CallOptions): Promise<Answer<'runDoctor'>>
  userStatus(account: Body<'userStatus'>, options?: CallOptions): Promise<Answer<'userStatus'>>
  sendReset(account: Body<'sendReset'>, options?: CallOptions): Promise<Answer<'sendReset'>>
  /** Throws with the code `has_password` where there is nothing to invite to, and likewise for other reasons. */
  inviteUser(account: Body<'inviteUser'>, options?: CallOptions): Promise<Answer<'inviteUser'>>
  sendVerification(
    account: Body<'sendVerification'>,
    options?: CallOptions,
  ): Promise<Answer<'sendVerification'>>
  endSessions(account: Body<'endSessions'>, options?: CallOptions): Promise<Answer<'endSessions'>>
  verifyUser(account: Body<'verifyUser'>, options?: CallOptions): Promise<Answer<'verifyUser'>>
  unverifyUser(
    account: Body<'unverifyUser'>,
    options?: CallOptions,
  ): Promise<Answer<'unverifyUser'>>
  /** Erases the records about an account; the user and its sessions stay. */
  forgetUser(account: Body<'forgetUser'>, options?: CallOptions): Promise<Answer<'forgetUser'>>
  listOutbox(query?: Query<'listOutbox'>, options?: CallOptions): Promise<Answer<'listOutbox'>>
  /** All that is known of a mail. */
  showMail(query: Query<'showMail'>, options?: CallOptions): Promise<Answer<'showMail'>>
  retryMails(which: Body<'retryMails'>, options?: CallOptions): Promise<Answer<'retryMails'>>
  purgeMails(which: Body<'purgeMails'>, options?: CallOptions): Promise<Answer<'purgeMails'>>
  listAudit(query?: Query<'listAudit'>, options?: CallOptions): Promise<Answer<'listAudit'>>
  explainLink(body: Body<'explainLink'>, options?: CallOptions): Promise<Answer<'explainLink'>>
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
  const root = rootOf(url) + adminPath
  // A host in JavaScript may give what an environment does not have.
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    throw new TypeError('token must be ASCII without spaces, and not empty')

  const operation = sender(root, token, options)
  const asks = <N extends Name>(
    route: Operations[N]['route'],
    field: RequiredKey<Answer<N>> | undefined,
  ) => {
    const call = operation<N>(route, field)
    const given = route.startsWith('GET') ? 'query' : 'body'
    return async (input: QueryValues | Body<N> = {}, options: CallOptions = {}) =>
      (await call({ ...options, [given]: input })).answer
  }
  const getSettings = operation<'getSettings'>('GET /settings', 'password_reset_expiration')
  const settingsHistory = operation<'settingsHistory'>('GET /settings/history', 'versions')
  const putSettings = operation<'putSettings'>('PUT /settings', 'password_reset_expiration')
  const unsetSettings = operation<'unsetSettings'>(
    'POST /settings/unset',
    'password_reset_expiration',
  )
  const rotateKeys = operation<'rotateKeys'>('POST /keys/rotate', 'resealed')

  return {
    getSettings: (options = {}) => getSettings(options),
    settingsHistory: (options = {}) => settingsHistory(options),
    putSettings: (body, { dryRun, unset, ...options } = {}) =>
      putSettings({ ...options, query: { unset, dry_run: dryRun }, body }),
    unsetSettings: (key, { dryRun, ...options } = {}) =>
      unsetSettings({ ...options, query: { key, dry_run: dryRun } }),
    testMail: asks<'testMail'>('POST /mail/test', 'checks'),
    previewMail: asks<'previewMail'>('GET /mail/preview', 'subject'),
    mailOutcome: asks<'mailOutcome'>('GET /mail/outcome', 'state'),
    runDoctor: asks<'runDoctor'>('POST /doctor', 'checks'),
    userStatus: asks<'userStatus'>('POST /users/status', 'username'),
    sendReset: asks<'sendReset'>('POST /users/send-reset', 'mail_id'),
    inviteUser: asks<'inviteUser'>('POST /users/invite', 'mail_id'),
    sendVerification: asks<'sendVerification'>('POST /users/send-verification', 'mail_id'),
    endSessions: asks<'endSessions'>('POST /users/end-sessions', undefined),
    verifyUser: asks<'verifyUser'>('POST /users/verify', 'changed'),
    unverifyUser: asks<'unverifyUser'>('POST /users/unverify', 'changed'),
    forgetUser: asks<'forgetUser'>('POST /users/forget', 'under_way'),
    listOutbox: asks<'listOutbox'>('GET /outbox', 'mails'),
    showMail: asks<'showMail'>('GET /outbox/mail', 'history'),
    retryMails: asks<'retryMails'>('POST /outbox/retry', 'changed'),
    purgeMails: asks<'purgeMails'>('POST /outbox/purge', 'changed'),
    listAudit: asks<'listAudit'>('GET /audit', 'events'),
    explainLink: asks<'explainLink'>('POST /links/explain', 'state'),
    rotateKeys: async (options = {}) => (await rotateKeys(options)).answer,
  }
}

function sender(root: string, token: string, { timeoutMs, onServerTime }: ClientOptions) {
  /** @param field - that every answer has, to tell it from the answer of something else. `undefined`: it has none. */
  return <N extends Name>(
    route: Operations[N]['route'],
    field: RequiredKey<Answer<N>> | undefined,
  ) => {
    const [method, path = ''] = route.split(' ')
    return async ({ query = {}, body, ifMatch, signal }: Call): Promise<Tagged<Answer<N>>> => {
      const answered = await exchange(`${root}${path}${queryText(query)}`, {
        method,
        body: body === undefined ? undefined : JSON.stringify(body),
        ...(signal && { signal }),
        ...(timeoutMs !== undefined && { timeoutMs }),
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
      if (status >= 200 && status < 300 && isAnswer(json, field)) {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- that the server answers as described is tested there
        return { answer: json as Answer<N>, etag: headers.etag }
      }
      throw refusalOf(answered, root)
    }
  }
}

type RequiredKey<T> = { [K in keyof T]-?: {} extends Pick<T, K> ? never : K }[keyof T]

interface Call extends CallOptions {
  query?: QueryValues
  body?: unknown
  ifMatch?: string | undefined
}
