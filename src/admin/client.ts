import { exchange, rootOf, type ClientOptions, type QueryValues } from './exchange.ts'
// Types alone: whoever asks has no need of what the server reads with.
import type { OperationName as Name, Operations, Settings } from './operations.ts'
import { ROUTES } from './routes.ts'

export type * from './operations.ts'
export { AdminApiError, type ClientOptions } from './exchange.ts'

type Answer<N extends Name> = Operations[N]['answer']
type Body<N extends Name> = Operations[N]['body']

/** An answer with the ETag of the settings that it tells. */
export interface Tagged<T> {
  answer: T
  etag: string | undefined
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

type Table = typeof ROUTES
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
  const root = rootOf(url) + adminPath
  // A host in JavaScript may give what an environment does not have.
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    throw new TypeError('token must be ASCII without spaces, and not empty')

  async function call<N extends Name>(
    name: N,
    { query = {}, body }: { query?: QueryValues; body?: unknown },
    { ifMatch, signal }: SettingsOptions = {},
  ): Promise<Tagged<Answer<N>>> {
    const [route, field] = ROUTES[name]
    const [method, path = ''] = route.split(' ')
    const headers = {
      authorization: `Bearer ${token}`,
      accept: 'application/json, application/problem+json',
      'user-agent': 'oidc-account-flows',
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(ifMatch !== undefined && { 'if-match': ifMatch }),
    }
    const question = { ...options, method, path, query, body, field, signal, headers }
    // That the server answers as described is tested there.
    return exchange(root, question)
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
