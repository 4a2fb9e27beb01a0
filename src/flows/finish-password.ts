/** What follows the claim of a link: the effects of section 3.3, in their order. */
import { newId } from '../crypto/token.ts'
import { requestNotice } from '../jobs/request.ts'
import type { LinkEnd, Requester, User, UserStore } from '../contract/index.ts'
import { MAIL_KINDS, type PasswordLinkKind } from '../contract/mail-kinds.ts'
import type { ClaimedReset, MailOutbox, ResetTokenStore, Token } from '../store/index.ts'
import { hasSamePassword, isUnchanged, isVerified } from './account.ts'
import { eventBy, type Environment } from './audit.ts'
import type { CodeTries } from './login-code.ts'
import type { AccountSessions, ClientNotifications } from './password-changed.ts'

export interface FinishParts extends Environment, Pick<ClientNotifications, 'appsOf'> {
  codes: Pick<CodeTries, 'forgetWrongCodes'>
  kind: PasswordLinkKind
  tokens: Pick<ResetTokenStore, 'advance'>
  users: UserStore
  sessions: AccountSessions
  outbox: Pick<MailOutbox, 'add'>
  /** Forgets wrong passwords, so that the user may sign in from that network at once. */
  forgetTries(account: User, by: Requester): Promise<void>
}

/** `request`: the request that claimed the link. `sweep`: a process that finishes the link of a dead process. */
type Finisher = 'request' | 'sweep'

export type FinishPassword = ReturnType<typeof createFinishPassword>

export function createFinishPassword(parts: FinishParts) {
  const { kind, tokens, sessions, settings, clock } = parts
  const { now } = clock

  /**
   * Marks a claimed link as used, with the effects of section 3.3 in their order. Each may be repeated. `undefined`: it was refused.
   *
   * @param account - read when the link was claimed, or when the sweep took it up.
   * @returns `apps`: for the page. `complete`: the rest, for which no answer waits. Until it is done, the sweep repeats all effects.
   */
  return async (reset: ClaimedReset, account: User | undefined, by: Finisher) => {
    const { id, userId, email, parameters, claimedBy } = reset
    let { usedAt } = reset
    if (!usedAt) {
      const obstacle = await setPassword(parts, reset, account) // 1
      if (obstacle) return reject(parts, reset, obstacle, by)
      usedAt = (await tokens.advance(id, 'used', now()))?.usedAt // 2
      if (!usedAt) throw new Error(`The reset ${id} was rejected meanwhile`)
    }
    const { ended: details, clear } = await sessions.cutOff(userId, { id, at: usedAt }) // 3, 4
    const type = `${MAIL_KINDS[kind].flow}_completed` as const
    const event = { ...eventBy(clock, reset, claimedBy), id: `completed:${id}`, type, details }
    const change = { id, accountId: userId, email, parameters, requester: claimedBy }
    const [apps] = await Promise.all([
      parts.appsOf(userId, id),
      parts.audit(event), // 5
      settings().passwordChangedEmail && requestNotice(parts.outbox, change, now()),
      // Not in the sweep: it may repeat this, which would lift the limit.
      by === 'request' && account && parts.forgetTries(account, claimedBy),
      kind === 'password_reset' && parts.codes.forgetWrongCodes(email),
    ])
    if (kind === 'password_reset' && settings().resetVerifiesEmail)
      await verifyByReset(parts, reset, by)
    return {
      apps,
      async complete() {
        await clear()
        await tokens.advance(id, 'completed', now())
      },
    }
  }
}

/** Verifies the address that a reset link went to: the user of the link has the mailbox. */
async function verifyByReset(parts: FinishParts, reset: ClaimedReset, by: Finisher) {
  const { users, audit, clock } = parts
  const { id, userId: accountId, email, claimedBy } = reset
  const isDone = await users.markEmailVerified(accountId, email)
  // The dead process may have verified it without recording that.
  const wasDone = by === 'sweep' && isVerified(reset, await users.findById(accountId))
  if (!isDone && !wasDone) return
  const event = { ...eventBy(clock, reset, claimedBy), id: `verified:${id}` }
  await audit({ ...event, type: 'email_verification_completed' })
}

/** Why a claimed link has no effect. */
type Obstacle = 'account_changed' | 'newer_password'

async function setPassword(
  { kind, users }: FinishParts,
  reset: ClaimedReset,
  user: User | undefined,
): Promise<Obstacle | undefined> {
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

// Never overwrites a newer password. But a dead process may have set the password of this reset before the newer one. So the sweep ends
// older sessions all the same.
async function reject(parts: FinishParts, reset: ClaimedReset, obstacle: Obstacle, by: Finisher) {
  const { id, userId, claimedAt, claimedBy } = reset
  if (by === 'sweep' && obstacle === 'newer_password')
    await parts.sessions.end(userId, { id, at: claimedAt, isExact: true })
  await auditRejected(parts, reset, obstacle, claimedBy, `rejected:${id}`)
  await parts.tokens.advance(id, 'rejected', parts.clock.now())
  return undefined
}

export async function auditRejected(
  { kind, audit, clock }: Pick<FinishParts, 'kind' | 'audit' | 'clock'>,
  token: Token,
  reason: LinkEnd | Obstacle,
  by: Requester,
  id = newId(),
) {
  const type = `${MAIL_KINDS[kind].flow}_rejected` as const
  await audit({ ...eventBy(clock, token, by), id, type, reason })
}
