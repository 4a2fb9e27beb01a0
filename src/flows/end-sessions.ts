import type { Clock } from '../clock.ts'
import { passwordDigest } from '../crypto/password.ts'
import { newId } from '../crypto/token.ts'
import { BY_HOST, requestNotice } from '../outbox/password-changed.ts'
import { secondAfter } from '../ports/login-end.ts'
import { refusesMail, type VoidLinks } from './account.ts'
import type {
  AccountSessions,
  AuditEvent,
  ClientLogout,
  EndedAccount,
  EndedClients,
  MailOutbox,
  Requester,
  SessionEnd,
  UserStore,
} from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'
import { isTold } from './told-clients.ts'

export interface EndSessionsParts {
  users: UserStore
  sessions: AccountSessions
  outbox: Pick<MailOutbox, 'add'>
  voidLinks: VoidLinks
  clientsOf(accountId: string, endId: string): Promise<ClientLogout[] | undefined>
  audit(event: AuditEvent): Promise<void>
  settings(): Settings
  clock: Clock
}

/** Ends everything that an account is signed in with, or could be by a link that was mailed before. */
export function createEndSessions(parts: EndSessionsParts) {
  const { audit, clock } = parts
  return async (accountId: string): Promise<EndedAccount> => {
    const end = { id: newId(), at: clock.now() }
    const { clients, ...details } = await endAll(parts, accountId, end)
    await audit({ ...end, type: 'sessions_ended', accountId, details })
    await secondAfter(clock, end.at)
    return { ...details, ...(clients && { clients }) }
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
  ): Promise<EndedAccount> => {
    const kept = req && (await sessionOf(req, accountId))
    const requester = req ? requesterOf(req) : NOBODY
    const end = { id: `${BY_HOST}${newId()}`, at: clock.now() }
    const { clients, ...details } = await endAll(parts, accountId, end, kept)
    const user = settings().passwordChangedEmail ? await users.findById(accountId) : undefined
    if (user?.email !== undefined && refusesMail(user) === undefined) {
      const { email, emailVerified, passwordHash } = user
      // Where the mailbox gets no reset link, its reader can have nothing blocked: nobody could set another password.
      const mayBlock = emailVerified || !settings().resetRequiresVerifiedEmail
      const digest =
        mayBlock && passwordHash !== undefined ? passwordDigest(passwordHash) : undefined
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
    return { ...details, ...(clients && { clients }) }
  }
}

async function endAll(
  { sessions, voidLinks, clientsOf }: EndSessionsParts,
  accountId: string,
  end: SessionEnd,
  kept?: string,
): Promise<EndedAccount> {
  await voidLinks(accountId)
  const oauth = await sessions.endOAuthSessions(accountId, end, kept)
  const idp = await sessions.endIdpSessions(accountId, end, kept)
  const clients = await clientsOf(accountId, end.id)
  return { oauth, idp, ...(clients && { clients: countsOf(clients) }) }
}

function countsOf(clients: ClientLogout[]): EndedClients {
  const told = clients.filter(isTold).length
  return { told, untold: clients.length - told }
}
