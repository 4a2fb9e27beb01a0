/** Ends the sessions of an account, alone or after the host replaced its password (3.5). `new-password.ts` does so after a link (3.3). */
import type { EndedAccount, EndedSessions } from '../contract/index.ts'
import { NOBODY } from '../contract/parameters.ts'
import { newId } from '../crypto/token.ts'
import { BY_HOST, requestPasswordNotice } from '../jobs/request-mail.ts'
import { secondAfter, type SessionEnd } from '../store/cutoffs.ts'
import { whyNoMail } from './account.ts'
import { isNotified } from './client-notifications.ts'
import type { Browser, FlowParts } from './parts.ts'
import { voidEverything } from './void-links.ts'

/** Ends everything after the host replaced a password (3.5). One browser gets a new session, and the owner gets a mail. */
export async function passwordChanged(parts: FlowParts, accountId: string, browser?: Browser) {
  const { users, audit, settings } = parts
  const session = browser && (await parts.sessions.liveOf(browser, accountId))
  const requester = browser ? parts.requesterOf(browser.req) : NOBODY
  const id = `${BY_HOST}${newId()}`
  const ended = await endAll(parts, accountId, { id, idpAt: session?.endsAt }, async (ended) => {
    const user = settings().passwordChangedEmail ? await users.findById(accountId) : undefined
    if (user?.email !== undefined && whyNoMail(user) === undefined) {
      const isUnverified = !user.emailVerified
      const change = { id, accountId, sendTo: user.email, isUnverified, parameters: {}, requester }
      await requestPasswordNotice(parts, change)
    }
    await audit({ ...ended, type: 'password_changed', ...requester })
  })
  // Last, so that earlier answers to this browser have set their cookies.
  await session?.renew()
  return ended
}

/** Ends all sessions and tokens of an account, and voids the links that were mailed to it. */
export const endSessions = (parts: FlowParts, accountId: string) =>
  endAll(parts, accountId, { id: newId() }, (ended) =>
    parts.audit({ ...ended, type: 'sessions_ended' }),
  )

async function endAll(
  { store, sessions, clients, clock }: FlowParts,
  accountId: string,
  { id, idpAt }: Pick<SessionEnd, 'id' | 'idpAt'>,
  record: (ended: SessionEnd & { accountId: string; details: EndedSessions }) => Promise<void>,
): Promise<EndedAccount> {
  const at = clock.now()
  await voidEverything(store, accountId)
  const details = await sessions.end(accountId, { id, at, idpAt })
  const signedOut = await clients.clientsOf(accountId, id)
  await record({ id, at, accountId, details })
  await secondAfter(clock, at)
  if (!signedOut) return details
  const notified = signedOut.filter(isNotified).length
  return { ...details, clients: { notified, notNotified: signedOut.length - notified } }
}
