/** The effects of a link's new password, in the order of 3.3: it is set, all sessions end, the owner gets a mail. */
import { isForFirst } from '../crypto/password.ts'
import type { LinkEnd, Requester, User } from '../contract/index.ts'
import type { PasswordLinkKind } from '../contract/mail-kinds.ts'
import { hashOf } from '../contract/users.ts'
import type { ClaimedToken, Token } from '../store/index.ts'
import { hasSamePassword, isUnchanged, isVerified } from './account.ts'
import { eventBy } from './audit.ts'
import { forgetWrongCodes } from './login-code.ts'
import { awaitedOf } from './other-address.ts'
import type { FlowParts, PasswordLinkParts } from './parts.ts'
import { requestPasswordNotice } from './request-mail.ts'

/** `maintenance`: another process finishes the link of a dead one. */
type Finisher = 'request' | 'maintenance'

/**
 * Sets the password of a claimed link, with the effects of section 3.3 in their order. `undefined`: the link was refused. Answer the form
 * first, and call `complete` for the rest then. Until that is done, the maintenance repeats all effects; each may be repeated.
 */
export async function finishPassword(
  parts: PasswordLinkParts,
  reset: ClaimedToken,
  account: User | undefined,
  finisher: Finisher,
) {
  const { kind, tokens, sessions, settings, clock } = parts
  const { id, userId, email, parameters, claimedBy } = reset
  let { usedAt } = reset
  if (!usedAt) {
    const obstacle = await setPassword(parts, reset, account) // 1
    if (obstacle) return reject(parts, reset, obstacle, finisher)
    usedAt = (await tokens.advance(id, 'used', clock.now()))?.usedAt // 2
    if (!usedAt) throw new Error(`The link ${id} was rejected meanwhile`)
  }
  const { ended: details, clear } = await sessions.cutOff(userId, { id, at: usedAt }) // 3, 4
  const event = eventBy(clock, reset, claimedBy, `completed:${id}`)
  const isFirst = setsFirst(kind, reset)
  const change = { id, isFirst, accountId: userId, sendTo: email, parameters, requester: claimedBy }
  const [apps] = await Promise.all([
    parts.notifications.appsOf(userId, id),
    parts.audit({ ...event, type: `${kind}_completed`, details }), // 5
    settings().passwordChangedEmail && requestPasswordNotice(parts, change),
    // Not in the maintenance: it may repeat this, which would lift the limits.
    finisher === 'request' && account && parts.passwords.forgetTries(account, claimedBy),
    finisher === 'request' && kind === 'password_reset' && forgetWrongCodes(parts, email),
  ])
  if (kind === 'password_reset' && settings().resetVerifiesEmail)
    await verifyByReset(parts, reset, finisher)
  return {
    apps,
    async complete() {
      await clear()
      await tokens.advance(id, 'completed', clock.now())
    },
  }
}

async function verifyByReset(parts: FlowParts, reset: ClaimedToken, finisher: Finisher) {
  const { users, audit, clock } = parts
  const { id, userId: accountId, email, claimedBy } = reset
  const isDone = await users.markEmailVerified(accountId, email)
  // The dead process may have verified it without recording that.
  const wasDone = finisher === 'maintenance' && isVerified(reset, await users.findById(accountId))
  if (!isDone && !wasDone) return
  const event = eventBy(clock, reset, claimedBy, `verified:${id}`)
  await audit({ ...event, type: 'email_verification_completed' })
}

const setsFirst = (kind: PasswordLinkKind, token: Token) =>
  kind === 'invitation' || isForFirst(token)

type Obstacle = 'account_changed' | 'newer_password'

async function setPassword(parts: PasswordLinkParts, reset: ClaimedToken, user?: User) {
  const { kind, users } = parts
  const { userId, email, newHash } = reset
  if (!user || newHash === undefined) return 'account_changed'
  if (user.passwordHash === newHash) return undefined
  const isFirst = setsFirst(kind, reset)
  const hash = hashOf(user)
  if (!hasSamePassword(reset, user))
    return isFirst && hash === undefined ? 'account_changed' : 'newer_password'
  if (!isUnchanged(reset, user) || (await awaitedOf(parts, user))) return 'account_changed'
  const isSet = isFirst
    ? (await users.setFirstPassword?.(userId, email, newHash)) === true
    : hash !== undefined && (await users.replacePasswordHash(userId, hash, newHash))
  if (isSet) return undefined
  const latest = await users.findById(userId)
  if (latest?.passwordHash === newHash) return undefined
  // Where there was a password, only that is compared, so another one was set.
  return isFirst && latest && hashOf(latest) === undefined ? 'account_changed' : 'newer_password'
}

// A dead process may have set the password of this reset before the newer one. So the maintenance ends older sessions all the same.
async function reject(
  parts: PasswordLinkParts,
  reset: ClaimedToken,
  why: Obstacle,
  finisher: Finisher,
) {
  const { id, userId, claimedAt, claimedBy } = reset
  if (finisher === 'maintenance' && why === 'newer_password')
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
  id?: string,
) {
  await audit({ ...eventBy(clock, token, by, id), type: `${kind}_rejected`, reason })
}
