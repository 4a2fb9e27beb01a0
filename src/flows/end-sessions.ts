import type { Clock } from '../clock.ts'
import { passwordDigest } from '../crypto/password.ts'
import { newId } from '../crypto/token.ts'
import { BY_HOST, requestNotice } from '../outbox/password-changed.ts'
import { secondAfter } from '../ports/login-end.ts'
import { refusesMail, type VoidLinks } from './account.ts'
import type {
  AccountSessions,
  AuditEvent,
  EndedSessions,
  MailOutbox,
  Requester,
  SessionEnd,
  UserStore,
} from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'

export interface EndSessionsParts {
  users: UserStore
  sessions: AccountSessions
  outbox: Pick<MailOutbox, 'add'>
  voidLinks: VoidLinks
  audit(event: AuditEvent): Promise<void>
  settings(): Settings
  clock: Clock
}

/** Ends everything that an account is signed in with, or could be by a link that was mailed before. */
export function createEndSessions(parts: EndSessionsParts) {
  const { audit, clock } = parts
  return async (accountId: string): Promise<EndedSessions> => {
    const end = { id: newId(), at: clock.now() }
    const details = await endAll(parts, accountId, end)
    await audit({ ...end, type: 'sessions_ended', accountId, details })
    await secondAfter(clock, end.at)
    return details
  }
}

/** How the request of a page of the host is read. */
interface RequestParts<Request> {
  /** `uid` of its live session of this account. */
  sessionOf(req: Request, accountId: string): Promise<string | undefined>
  requesterOf(req: Request): Requester
}

const NOBODY = { address: undefined, userAgent: undefined }

/** The same once the host itself has replaced a password: the session of one request may stay, and the owner is told. */
export function createPasswordChanged<Request>(parts: EndSessionsParts & RequestParts<Request>) {
  const { users, outbox, audit, settings, clock, sessionOf, requesterOf } = parts
  return async (
    accountId: string,
    { keepSession: req }: { keepSession?: Request | undefined } = {},
  ): Promise<EndedSessions> => {
    const kept = req && (await sessionOf(req, accountId))
    const requester = req ? requesterOf(req) : NOBODY
    const end = { id: `${BY_HOST}${newId()}`, at: clock.now() }
    const details = await endAll(parts, accountId, end, kept)
    const user = settings().passwordChangedEmail ? await users.findById(accountId) : undefined
    if (user?.email !== undefined && refusesMail(user) === undefined) {
      const { email, passwordHash } = user
      const digest = passwordHash === undefined ? undefined : passwordDigest(passwordHash)
      const change = {
        id: end.id,
        accountId,
        email,
        passwordDigest: digest,
        carried: {},
        requester,
      }
      await requestNotice(outbox, change, clock.now())
    }
    await audit({ ...end, type: 'password_changed', accountId, details, ...requester })
    await secondAfter(clock, end.at)
    return details
  }
}

async function endAll(
  { sessions, voidLinks }: EndSessionsParts,
  accountId: string,
  end: SessionEnd,
  kept?: string,
): Promise<EndedSessions> {
  await voidLinks(accountId)
  const oauth = await sessions.endOAuthSessions(accountId, end, kept)
  const idp = await sessions.endIdpSessions(accountId, end, kept)
  return { oauth, idp }
}
