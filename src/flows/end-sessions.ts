import type { Clock } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import { secondAfter } from '../ports/login-end.ts'
import type { VoidLinks } from './account.ts'
import type {
  AccountSessions,
  AuditEvent,
  ClientLogout,
  EndedAccount,
  EndedClients,
} from '../ports/index.ts'
import { isTold } from './told-clients.ts'

interface Parts {
  sessions: AccountSessions
  clock: Clock
  audit(event: AuditEvent): Promise<void>
  clientsOf(accountId: string, endId: string): Promise<ClientLogout[] | undefined>
}

/** Ends everything that an account is signed in with, or could be by a link that was mailed before. */
export function createEndSessions(
  { sessions, clock, audit, clientsOf }: Parts,
  voidLinks: VoidLinks,
) {
  return async (accountId: string): Promise<EndedAccount> => {
    await voidLinks(accountId)
    const end = { id: newId(), at: clock.now() }
    const oauth = await sessions.endOAuthSessions(accountId, end)
    const idp = await sessions.endIdpSessions(accountId, end)
    await audit({ ...end, type: 'sessions_ended', accountId, details: { oauth, idp } })
    const clients = await clientsOf(accountId, end.id)
    await secondAfter(clock, end.at)
    return { oauth, idp, ...(clients && { clients: countsOf(clients) }) }
  }
}

function countsOf(clients: ClientLogout[]): EndedClients {
  const told = clients.filter(isTold).length
  return { told, untold: clients.length - told }
}
