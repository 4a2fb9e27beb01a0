import { newId } from '../crypto/token.ts'
import { BY_HOST, requestNotice } from '../jobs/request.ts'
import { secondAfter } from '../store/cutoffs.ts'
import { whyNoMail, type VoidLinks } from './account.ts'
import type { EndedAccount, EndedClients, Requester } from '../contract/index.ts'
import type { ClientLogout, SessionEnd } from '../store/index.ts'
import { NOBODY, type FlowParts } from './parts.ts'
import { isNotified, type ClientNotifications } from './client-notifications.ts'

interface EndSessionsParts
  extends
    Pick<FlowParts, 'users' | 'sessions' | 'outbox' | 'audit' | 'settings' | 'clock'>,
    Pick<ClientNotifications, 'clientsOf'> {
  voidEverything: VoidLinks
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

/** A session of a browser whose account is about to be ended, with that session. */
interface LiveSession {
  /**
   * End sessions and login results at this time: one millisecond after the cut-off that the session has seen. The new session
   * has seen an end of exactly then. Any other end, earlier or later, moves the cut-off past that, and so ends it.
   */
  endsAt: Date
  /**
   * Makes this browser a new session of the same login, and sets its cookie. Call it after both ends. Where that fails, it logs why, and
   * the browser is signed out like the others.
   */
  renew(): Promise<void>
}

interface BrowserParts<Request, Browser extends { req: Request }> {
  /** Its live session of this account. `undefined`: there is none. */
  liveSession(browser: Browser, accountId: string): Promise<LiveSession | undefined>
  requesterOf(req: Request): Requester
}

/** The same once the host itself has replaced a password: one browser gets a new session, and the owner gets a mail. */
export function createPasswordChanged<Request, Browser extends { req: Request }>(
  parts: EndSessionsParts & BrowserParts<Request, Browser>,
) {
  const { users, outbox, audit, settings, clock, liveSession, requesterOf } = parts
  return async (accountId: string, browser?: Browser): Promise<EndedAccount> => {
    const session = browser && (await liveSession(browser, accountId))
    const requester = browser ? requesterOf(browser.req) : NOBODY
    const end = { id: `${BY_HOST}${newId()}`, at: clock.now() }
    const { clients, ...details } = await endAll(parts, accountId, end, session?.endsAt)
    const user = settings().passwordChangedEmail ? await users.findById(accountId) : undefined
    if (user?.email !== undefined && whyNoMail(user) === undefined) {
      const { email, emailVerified } = user
      const isClaim = !emailVerified
      const change = { id: end.id, accountId, email, isClaim, carried: {}, requester }
      await requestNotice(outbox, change, clock.now())
    }
    await audit({ ...end, type: 'password_changed', accountId, details, ...requester })
    await secondAfter(clock, end.at)
    // Last, so that earlier answers to this browser have set their cookies.
    await session?.renew()
    return { ...details, ...(clients && { clients }) }
  }
}

async function endAll(
  { sessions, voidEverything, clientsOf }: EndSessionsParts,
  accountId: string,
  end: SessionEnd,
  idpAt = end.at,
): Promise<EndedAccount> {
  await voidEverything(accountId)
  const ended = await sessions.end(accountId, { ...end, idpAt })
  const clients = await clientsOf(accountId, end.id)
  return { ...ended, ...(clients && { clients: countsOf(clients) }) }
}

function countsOf(clients: ClientLogout[]): EndedClients {
  const notified = clients.filter(isNotified).length
  return { told: notified, untold: clients.length - notified }
}
