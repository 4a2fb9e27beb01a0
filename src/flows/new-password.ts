/** What a new password ends and reports: set by a link (3.3), or by the host (3.5). `endSessions` ends the same without one. */
import { newId } from '../crypto/token.ts'
import { BY_HOST, requestNotice } from '../jobs/request-mail.ts'
import type { EndedAccount, EndedSessions, LinkEnd, Requester, User } from '../contract/index.ts'
import { MAIL_KINDS } from '../contract/mail-kinds.ts'
import { secondAfter, type SessionEnd } from '../store/cutoffs.ts'
import type { ClaimedReset, Token } from '../store/index.ts'
import { defined } from '../store/kind.ts'
import { hasSamePassword, isUnchanged, isVerified, voidEverything, whyNoMail } from './account.ts'
import { eventBy, NOBODY } from './audit.ts'
import { isNotified } from './client-notifications.ts'
import { forgetWrongCodes } from './login-code.ts'
import type { Browser, FlowParts, PasswordLinkParts } from './parts.ts'

/** `maintenance`: another process finishes the link of a dead one. */
type Finisher = 'request' | 'maintenance'

/**
 * Sets the password of a claimed link, with the effects of section 3.3 in their order. `undefined`: the link was refused. Answer the form
 * first, and call `complete` for the rest then. Until that is done, the maintenance repeats all effects; each may be repeated.
 */
export async function finishPassword(
  parts: PasswordLinkParts,
  reset: ClaimedReset,
  account: User | undefined,
  by: Finisher,
) {
  const { kind, tokens, sessions, settings, clock } = parts
  const { id, userId, email, parameters, claimedBy } = reset
  let { usedAt } = reset
  if (!usedAt) {
    const obstacle = await setPassword(parts, reset, account) // 1
    if (obstacle) return reject(parts, reset, obstacle, by)
    usedAt = (await tokens.advance(id, 'used', clock.now()))?.usedAt // 2
    if (!usedAt) throw new Error(`The reset ${id} was rejected meanwhile`)
  }
  const { ended: details, clear } = await sessions.cutOff(userId, { id, at: usedAt }) // 3, 4
  const type = `${MAIL_KINDS[kind].flow}_completed` as const
  const event = { ...eventBy(clock, reset, claimedBy), id: `completed:${id}`, type, details }
  const change = { id, accountId: userId, sendTo: email, parameters, requester: claimedBy }
  const [apps] = await Promise.all([
    parts.clients.appsOf(userId, id),
    parts.audit(event), // 5
    settings().passwordChangedEmail && requestNotice(parts, change),
    // Not in the maintenance: it may repeat this, which would lift the limit.
    by === 'request' && account && parts.passwords.forgetTries(account, claimedBy),
    kind === 'password_reset' && forgetWrongCodes(parts, email),
  ])
  if (kind === 'password_reset' && settings().resetVerifiesEmail)
    await verifyByReset(parts, reset, by)
  return {
    apps,
    async complete() {
      await clear()
      await tokens.advance(id, 'completed', clock.now())
    },
  }
}

async function verifyByReset(parts: FlowParts, reset: ClaimedReset, by: Finisher) {
  const { users, audit, clock } = parts
  const { id, userId: accountId, email, claimedBy } = reset
  const isDone = await users.markEmailVerified(accountId, email)
  // The dead process may have verified it without recording that.
  const wasDone = by === 'maintenance' && isVerified(reset, await users.findById(accountId))
  if (!isDone && !wasDone) return
  const event = { ...eventBy(clock, reset, claimedBy), id: `verified:${id}` }
  await audit({ ...event, type: 'email_verification_completed' })
}

type Obstacle = 'account_changed' | 'newer_password'

async function setPassword({ kind, users }: PasswordLinkParts, reset: ClaimedReset, user?: User) {
  const { userId, email, newHash } = reset
  if (!user || newHash === undefined) return 'account_changed'
  if (user.passwordHash === newHash) return undefined
  if (!hasSamePassword(reset, user)) return 'newer_password'
  if (!isUnchanged(reset, user)) return 'account_changed'
  const { passwordHash } = user
  const isSet =
    kind === 'invitation'
      ? (await users.setFirstPassword?.(userId, email, newHash)) === true
      : passwordHash !== undefined &&
        (await users.replacePasswordHash(userId, passwordHash, newHash))
  if (isSet) return undefined
  const now = await users.findById(userId)
  if (now?.passwordHash === newHash) return undefined
  // A reset compares only the password, so another password was set.
  const isOfAccount = kind === 'invitation' && now && hasSamePassword(reset, now)
  return isOfAccount ? 'account_changed' : 'newer_password'
}

// A dead process may have set the password of this reset before the newer one. So the maintenance ends older sessions all the same.
async function reject(parts: PasswordLinkParts, reset: ClaimedReset, why: Obstacle, by: Finisher) {
  const { id, userId, claimedAt, claimedBy } = reset
  if (by === 'maintenance' && why === 'newer_password')
    await parts.sessions.end(userId, { id, at: claimedAt, isExact: true })
  await auditRejected(parts, reset, why, claimedBy, `rejected:${id}`)
  await parts.tokens.advance(id, 'rejected', parts.clock.now())
  return undefined
}

export async function auditRejected(
  { kind, audit, clock }: PasswordLinkParts,
  token: Token,
  reason: LinkEnd | Obstacle,
  by: Requester,
  id = newId(),
) {
  const type = `${MAIL_KINDS[kind].flow}_rejected` as const
  await audit({ ...eventBy(clock, token, by), id, type, reason })
}

/** Ends everything after the host replaced a password (3.5). One browser gets a new session, and the owner gets a mail. */
export async function passwordChanged(parts: FlowParts, accountId: string, browser?: Browser) {
  const { users, audit, settings } = parts
  const session = browser && (await parts.sessions.liveOf(browser, accountId))
  const requester = browser ? parts.requesterOf(browser.req) : NOBODY
  const id = `${BY_HOST}${newId()}`
  const ended = await endAll(parts, accountId, { id, idpAt: session?.endsAt }, async (ended) => {
    const user = settings().passwordChangedEmail ? await users.findById(accountId) : undefined
    if (user?.email !== undefined && whyNoMail(user) === undefined) {
      const isClaim = !user.emailVerified
      const change = { id, accountId, sendTo: user.email, isClaim, parameters: {}, requester }
      await requestNotice(parts, change)
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
  { id, idpAt }: { id: string; idpAt?: Date | undefined },
  record: (ended: SessionEnd & { accountId: string; details: EndedSessions }) => Promise<void>,
): Promise<EndedAccount> {
  const at = clock.now()
  await voidEverything(store, accountId)
  const details = await sessions.end(accountId, { id, at, ...defined({ idpAt }) })
  const signedOut = await clients.clientsOf(accountId, id)
  await record({ id, at, accountId, details })
  await secondAfter(clock, at)
  if (!signedOut) return details
  const notified = signedOut.filter(isNotified).length
  return { ...details, clients: { notified, notNotified: signedOut.length - notified } }
}
