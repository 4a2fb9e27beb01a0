import { idOf } from '../crypto/token.ts'
import { isStoreUnavailable } from '../errors.ts'
import type { Log } from '../contract/index.ts'
import type { NewClientLogout, SessionEnd } from '../store/index.ts'
import type { EndedClientSids } from './account-records.ts'
import { isBackchannelLogoutOn } from './backchannel-logout.ts'
import { readClient } from './clients.ts'
import type { OidcParts } from './parts.ts'
import type { Client } from './request-check.ts'

/** A client that is down for a day is not notified. */
const LIFE_MS = 24 * 3_600_000

type Parts = Pick<OidcParts, 'provider' | 'clientLogouts' | 'clock' | 'log'>

export type RecordLoggedOutClients = ReturnType<typeof createRecordLoggedOutClients>

/**
 * Records which clients are to be notified, and calls `wake` if there are any. It
 * throws only if the store cannot be reached.
 */
export function createRecordLoggedOutClients(
  { provider, clientLogouts, clock, log }: Parts,
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
          const canBeTold = notified.length > 0
          const requestedAt = clock.now()
          const expiresAt = new Date(requestedAt.getTime() + LIFE_MS)
          const logout = { endId: end.id, accountId, clientId, canBeTold, requestedAt, expiresAt }
          for (const sid of canBeTold ? notified : [undefined])
            logouts.push({ ...logout, id: idOf([end.id, clientId, sid]), sid })
        })
      // All at once: to read a client, the provider may wait for its server.
      await Promise.all([...clients].map(note))
      await clientLogouts.add(logouts)
      if (logouts.some(({ canBeTold }) => canBeTold)) wake()
    })
}

/** Other failures are only logged: the account is signed out here in any case. */
async function unlessUnavailable(log: Log, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (isStoreUnavailable(error)) throw error
    const message = 'clients of an ended account could not be found; they are not told'
    log('error', message, { error: String(error) })
  }
}

/** Each `sid` of which the client is notified. `undefined`: all at once. An empty list: it cannot be notified. */
function sidsToNotify(client: Client | 'unreadable', sids: string[]): (string | undefined)[] {
  // It may be readable later. What it requires is not known yet, and a `sid` is right in any case.
  if (client === 'unreadable') return sids.length > 0 ? sids : [undefined]
  if (client.backchannelLogoutUri === undefined) return []
  return client.backchannelLogoutSessionRequired === true ? sids : [undefined]
}
