/** What follows the claim of a link: the effects of section 3.3, in their order. */
import { newId } from '../crypto/token.ts'
import { requestNotice } from '../outbox/password-changed.ts'
import type { LinkEnd, Requester, User } from '../ports/index.ts'
import { MAIL_KINDS, type PasswordLinkKind } from '../ports/mail-kinds.ts'
import type { ClaimedReset, ResetTokenStore, Token } from '../records/index.ts'
import { hasSamePassword, isUnchanged, verifyByReset } from './account.ts'
import { forgetWrongCodes } from './login-code.ts'
import type { FlowParts } from './parts.ts'

export interface PasswordLinkParts extends FlowParts {
  kind: PasswordLinkKind
  tokens: ResetTokenStore
}

/** Short, because a dead process keeps sessions alive. To repeat the effects of a slow one does no harm. */
const LEASE_MS = 10_000

export const leaseEnd = ({ clock }: Pick<FlowParts, 'clock'>) =>
  new Date(clock.now().getTime() + LEASE_MS)

/** unused → used, with the effects of section 3.3 in their order; each may be repeated. `undefined`: it was refused. */
export async function finishPassword(parts: PasswordLinkParts, reset: ClaimedReset, by: Finisher) {
  const { kind, tokens, sessions, outbox, audit, settings } = parts
  const { now } = parts.clock
  const { id, userId, carried, claimedBy } = reset
  let { usedAt } = reset
  if (!usedAt) {
    const obstacle = await setPassword(parts, reset) // 1
    if (obstacle) return reject(parts, reset, obstacle, by)
    usedAt = (await tokens.advance(id, 'used', now()))?.usedAt // 2
    if (!usedAt) throw new Error(`The reset ${id} was rejected meanwhile`)
  }
  const details = await sessions.end(userId, { id, at: usedAt }) // 3, 4
  if (settings().passwordChangedEmail) await requestNotice(outbox, noticeOf(reset), now())
  const type = `${MAIL_KINDS[kind].flow}_completed` as const
  const event = { id: `completed:${id}`, type, at: now(), accountId: userId }
  await audit({ ...event, clientId: carried.clientId, details, ...claimedBy }) // 5
  if (kind === 'password_reset') {
    const isVerified = settings().resetVerifiesEmail
    await Promise.all([
      forgetWrongCodes(parts, reset.email),
      isVerified && verifyByReset(parts, reset, by === 'sweep'),
    ])
  }
  await tokens.advance(id, 'completed', now())
  return usedAt
}

function noticeOf({ id, userId, email, carried, claimedBy }: ClaimedReset) {
  return { id, accountId: userId, email, carried, requester: claimedBy }
}

/** Why a claimed link has no effect. */
type Obstacle = 'account_changed' | 'newer_password'
type Finisher = 'request' | 'sweep'

// After the claim, so that a change of the account up to the last moment counts.
async function setPassword(
  parts: PasswordLinkParts,
  reset: ClaimedReset,
): Promise<Obstacle | undefined> {
  const { kind, users } = parts
  const { userId, newHash } = reset
  const user = await users.findById(userId)
  if (!user || newHash === undefined) return 'account_changed'
  if (user.passwordHash === newHash) return undefined
  if (!hasSamePassword(reset, user)) return 'newer_password'
  if (!isUnchanged(reset, user)) return 'account_changed'
  if (await comparedAndSet(parts, reset, user, newHash)) return undefined
  const now = await users.findById(userId)
  if (now?.passwordHash === newHash) return undefined
  // A reset compares the password alone, so that was another one.
  const isOfAccount = kind === 'invitation' && now && hasSamePassword(reset, now)
  return isOfAccount ? 'account_changed' : 'newer_password'
}

async function comparedAndSet(
  { kind, users }: PasswordLinkParts,
  { userId, email }: ClaimedReset,
  { passwordHash }: User,
  next: string,
): Promise<boolean> {
  if (kind === 'invitation') return (await users.setFirstPassword?.(userId, email, next)) === true
  return passwordHash !== undefined && users.replacePasswordHash(userId, passwordHash, next)
}

// A newer password is never overwritten. But a dead process may have set the password of the reset before that one. So older sessions
// end in any case.
async function reject(
  parts: PasswordLinkParts,
  reset: ClaimedReset,
  obstacle: Obstacle,
  by: Finisher,
) {
  const { id, userId, claimedAt, claimedBy } = reset
  if (by === 'sweep' && obstacle === 'newer_password')
    await parts.sessions.end(userId, { id, at: claimedAt, isExact: true })
  await auditRejected(parts, reset, obstacle, claimedBy, `rejected:${id}`)
  await parts.tokens.advance(id, 'rejected', parts.clock.now())
  return undefined
}

export function auditRejected(
  { kind, audit, clock }: PasswordLinkParts,
  { userId: accountId, carried: { clientId } }: Token,
  reason: LinkEnd | Obstacle,
  by: Requester,
  id = newId(),
): Promise<void> {
  const event = { id, type: `${MAIL_KINDS[kind].flow}_rejected` as const, at: clock.now() }
  return audit({ ...event, accountId, clientId, reason, ...by })
}
