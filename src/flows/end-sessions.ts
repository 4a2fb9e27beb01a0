import type { Clock } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import { secondAfter } from '../ports/login-end.ts'
import type { VoidLinks } from './account.ts'
import type { AccountSessions, AuditEvent, EndedSessions } from '../ports/index.ts'

/** Ends everything that an account is signed in with, or could be by a link that was mailed before. */
export function createEndSessions(
  sessions: AccountSessions,
  voidLinks: VoidLinks,
  clock: Clock,
  audit: (event: AuditEvent) => Promise<void>,
) {
  return async (accountId: string): Promise<EndedSessions> => {
    await voidLinks(accountId)
    const end = { id: newId(), at: clock.now() }
    const oauth = await sessions.endOAuthSessions(accountId, end)
    const idp = await sessions.endIdpSessions(accountId, end)
    await audit({ ...end, type: 'sessions_ended', accountId, details: { oauth, idp } })
    await secondAfter(clock, end.at)
    return { oauth, idp }
  }
}
