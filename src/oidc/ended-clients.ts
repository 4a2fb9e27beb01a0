import type { Provider } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import { idOf } from '../crypto/token.ts'
import { isStoreUnavailable } from '../errors.ts'
import type { Log, SessionEnd } from '../ports/index.ts'
import type { ClientLogoutStore, NewClientLogout } from '../records/index.ts'
import type { AccountRecords } from './account-records.ts'
import { tellsClients } from './backchannel-logout.ts'
import { readClient } from './clients.ts'
import type { Client } from './request-check.ts'

/** A client that is down for a day is not told. */
const LIFE_MS = 24 * 3_600_000

/** Where the clients of an account are. A session and a refresh token also have the `sid` that a client is told; either may be gone. */
const HOLD_CLIENTS = ['Grant', 'RefreshToken', 'Session']

export interface EndedClientsParts {
  provider(): Provider
  logouts: Pick<ClientLogoutStore, 'add'>
  /** There is somebody to be told. */
  ring(): void
  clock: Clock
  log: Log
}

/**
 * Notes which clients are to be told that the account is ended there. It is called before its records are deleted. Where the provider
 * tells no clients, it does nothing. It throws only where what is stored cannot be reached.
 */
export type NoteClients = ReturnType<typeof createNoteClients>

export function createNoteClients({
  provider,
  logouts: kept,
  ring,
  clock,
  log,
}: EndedClientsParts) {
  return (accountId: string, end: SessionEnd, records: Pick<AccountRecords, 'readEnded'>) =>
    unlessUnavailable(log, async () => {
      if (!tellsClients(provider())) return
      const clients = await sessionsByClient(records)
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
      await kept.add(logouts)
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

async function sessionsByClient({
  readEnded,
}: Pick<AccountRecords, 'readEnded'>): Promise<Map<string, Set<string>>> {
  const clients = new Map<string, Set<string>>()
  function note(clientId: string | undefined, sid: unknown) {
    if (clientId === undefined) return
    const sids = clients.get(clientId) ?? new Set()
    clients.set(clientId, sids)
    if (typeof sid === 'string') sids.add(sid)
  }
  for (const { clientId, sid, authorizations = {} } of await readEnded(HOLD_CLIENTS)) {
    note(clientId, sid)
    for (const [client, { sid }] of Object.entries(authorizations)) note(client, sid)
  }
  return clients
}

/** The sessions that the client is told of; `undefined`: of all at once. None: it cannot be told. */
function toldOf(client: Client | 'unreadable', sids: string[]): (string | undefined)[] {
  // It may be readable once it is told. What it asks for then is not known yet: a session is right for all.
  if (client === 'unreadable') return sids.length > 0 ? sids : [undefined]
  if (client.backchannelLogoutUri === undefined) return []
  return client.backchannelLogoutSessionRequired === true ? sids : [undefined]
}
