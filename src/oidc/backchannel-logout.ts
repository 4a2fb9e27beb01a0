/** OpenID Connect Back-Channel Logout 1.0, by the provider's own means. */
import { randomUUID } from 'node:crypto'
import type { Provider } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import type { ClientLogout, NewClientLogout, NotifyClient } from '../store/client-logouts.ts'
import type { AccountFlowsStore } from '../store/index.ts'
import { readClient } from './clients.ts'
import type { PostForm } from './post-form.ts'
import type { Client } from './recheck.ts'
import { idOf } from '../crypto/token.ts'
import { isStoreUnavailable } from '../errors.ts'
import type { Log } from '../contract/index.ts'
import type { SessionEnd } from '../store/cutoffs.ts'
import type { EndedClientSids } from './account-records.ts'

/** Whether back-channel logout is on. Only then does the provider know `backchannel_logout_uri` of its clients. */
export function isBackchannelLogoutOn({ Client }: Provider): boolean {
  const metadata = {
    client_id: 'probe',
    redirect_uris: ['https://client.invalid/'],
    token_endpoint_auth_method: 'none',
    backchannel_logout_uri: 'https://client.invalid/',
  }
  try {
    const probe: object = Reflect.construct(Client, [metadata])
    return Reflect.get(probe, 'backchannelLogoutUri') !== undefined
  } catch {
    // The host requires more metadata (`extraClientMetadata`) than this probe has. Then each client shows whether it has the URI.
    return true
  }
}

type NotifyParts = Pick<LogoutParts, 'provider' | 'log'> & { post: PostForm }

/** Notifies a client. It reads the client and its keys, and makes the token, only then. It stores none of them. */
export function createNotifyClient({ provider, post, log }: NotifyParts): NotifyClient {
  return async (logout, signal) => {
    const { clientId } = logout
    const client = await readClient(provider(), clientId)
    if (client === 'unreadable') return { reason: 'client_unreadable', isFinal: false }
    if (!client) return { reason: 'client_gone', isFinal: true }
    const { backchannelLogoutUri: uri } = client
    if (uri === undefined) return { reason: 'no_uri', isFinal: true }
    const token = await logoutToken(provider(), client, logout).catch((error: unknown) =>
      log('warn', 'no logout token could be made', { client: clientId, error: String(error) }),
    )
    if (token === undefined) return { reason: 'no_token', isFinal: false }
    const reason = await post(uri, { logout_token: token }, signal)
    // Not even 400 is final: the client may have failed to end its session this time only.
    return reason === undefined ? undefined : { reason, isFinal: false }
  }
}

/** As `client.backchannelLogout` of oidc-provider does: with the provider's subject, keys, algorithms and encryption. */
async function logoutToken({ IdToken }: Provider, client: Client, logout: ClientLogout) {
  const { accountId, sid } = logout
  const token = Object.assign(new IdToken({ sub: accountId }, { client }), { mask: { sub: null } })
  token.set('events', { 'http://schemas.openid.net/event/backchannel-logout': {} })
  token.set('jti', randomUUID())
  if (sid !== undefined) token.set('sid', sid)
  return token.issue({ use: 'logout' })
}

/** A client that is down for a day is not notified. */
const LIFE_MS = 24 * 3_600_000

export type RecordLoggedOutClients = ReturnType<typeof createRecordLoggedOutClients>

interface LogoutParts {
  provider(): Provider
  clientLogouts: AccountFlowsStore['clientLogouts']
  clock: Clock
  log: Log
}

/** Records which clients are to be notified, and calls `wake` if there are any. It throws only if the store cannot be reached. */
export function createRecordLoggedOutClients(
  { provider, clientLogouts, clock, log }: LogoutParts,
  wake: () => void,
) {
  return (accountId: string, end: SessionEnd, clients: EndedClientSids) =>
    unlessUnavailable(log, async () => {
      if (!isBackchannelLogoutOn(provider())) return
      const logouts: NewClientLogout[] = []
      const note = ([clientId, sids]: [string, Set<string>]) =>
        unlessUnavailable(log, async () => {
          const client = await readClient(provider(), clientId)
          if (!client) return
          const notified = sidsToNotify(client, [...sids])
          const state = notified.length > 0 ? ('waiting' as const) : ('not_notified' as const)
          const requestedAt = clock.now()
          const expiresAt = new Date(requestedAt.getTime() + LIFE_MS)
          const logout = { endId: end.id, accountId, clientId, state, requestedAt, expiresAt }
          for (const sid of state === 'waiting' ? notified : [undefined])
            logouts.push({ ...logout, id: idOf([end.id, clientId, sid]), sid })
        })
      // Reads all clients at once: for each, the provider may wait for a server of the client.
      await Promise.all([...clients].map(note))
      await clientLogouts.add(logouts)
      if (logouts.some(({ state }) => state === 'waiting')) wake()
    })
}

/** Throws if the store cannot be reached. It only logs other failures: the account is signed out here in any case. */
async function unlessUnavailable(log: Log, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (isStoreUnavailable(error)) throw error
    const message = 'clients of an ended account could not be found; they are not told'
    log('error', message, { error: String(error) })
  }
}

/** The `sid` of each notification to the client. `undefined`: one for all sessions. An empty list: the client cannot be notified. */
function sidsToNotify(client: Client | 'unreadable', sids: string[]): (string | undefined)[] {
  // The client may be readable later. Whether it requires a `sid` is not known yet, and a `sid` is right in any case.
  if (client === 'unreadable') return sids.length > 0 ? sids : [undefined]
  if (client.backchannelLogoutUri === undefined) return []
  return client.backchannelLogoutSessionRequired === true ? sids : [undefined]
}
