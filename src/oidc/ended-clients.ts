import { idOf } from '../crypto/token.ts'
import { isStoreUnavailable } from '../errors.ts'
import type { Log, SessionEnd } from '../ports/index.ts'
import type { NewClientLogout } from '../records/index.ts'
import type { AccountRecords } from './account-records.ts'
import { tellsClients } from './backchannel-logout.ts'
import { readClient } from './clients.ts'
import type { OidcParts } from './parts.ts'
import type { Client } from './request-check.ts'

/** A client that is down for a day is not told. */
const LIFE_MS = 24 * 3_600_000

export type NoteClients = ReturnType<typeof createNoteClients>

/**
 * Notes which clients are to be told that the account is ended there. It is called before its records are deleted. Where the provider
 * tells no clients, it does nothing. It throws only where what is stored cannot be reached.
 *
 * @param ring - there is somebody to be told.
 */
export function createNoteClients(
  { provider, clientLogouts, clock, log }: OidcParts,
  ring: () => void,
) {
  return (accountId: string, end: SessionEnd, records: Pick<AccountRecords, 'clientsOfEnded'>) =>
    unlessUnavailable(log, async () => {
      if (!tellsClients(provider())) return
      const clients = await records.clientsOfEnded()
      const logouts: NewClientLogout[] = []
      const note = ([clientId, sids]: [string, Set<string>]) =>
        unlessUnavailable(log, async () => {
          const client = await readClient(provider(), clientId)
          if (!client) return
          const told = toldOf(client, [...sids])
          const canBeTold = told.length > 0
          const requestedAt = clock.now()
          const expiresAt = new Date(requestedAt.getTime() + LIFE_MS)
          const logout = { endId: end.id, accountId, clientId, canBeTold, requestedAt, expiresAt }
          for (const sid of canBeTold ? told : [undefined])
            logouts.push({ ...logout, id: idOf([end.id, clientId, sid]), sid })
        })
      // At once: to read one, the provider may wait for a server of the client.
      await Promise.all([...clients].map(note))
      await clientLogouts.add(logouts)
      if (logouts.some(({ canBeTold }) => canBeTold)) ring()
    })
}

/** Sessions end all the same: a client that is not told keeps its own for a while. */
async function unlessUnavailable(log: Log, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (isStoreUnavailable(error)) throw error
    const message = 'clients of an ended account could not be found; they are not told'
    log('error', message, { error: String(error) })
  }
}

/** The sessions that the client is told of; `undefined`: of all at once. None: it cannot be told. */
function toldOf(client: Client | 'unreadable', sids: string[]): (string | undefined)[] {
  // It may be readable once it is told. What it asks for then is not known yet: a session is right for all.
  if (client === 'unreadable') return sids.length > 0 ? sids : [undefined]
  if (client.backchannelLogoutUri === undefined) return []
  return client.backchannelLogoutSessionRequired === true ? sids : [undefined]
}
