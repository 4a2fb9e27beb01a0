/**
 * E-mail verification during the login: section 3.2 of the specification, in code.
 *
 * | state  | trigger                          | here                                                       | next   |
 * |--------|----------------------------------|------------------------------------------------------------|--------|
 * | (none) | POST login, address not verified | `blocks`, `block`; later in a worker, `verification-mail`  | unused |
 * | (none) | POST resend-verification         | `resend`; later in a worker, `verification-mail`           | unused |
 * | unused | GET verify-email                 | `open`, then `confirm`                                     | used   |
 * | used   | any use                          | `open` answers `expired`                                   | used   |
 *
 * @module
 */
import type { AuthorizeSig } from '../crypto/authorize-sig.ts'
import { passwordDigest } from '../crypto/password.ts'
import { hashToken, isToken, newId } from '../crypto/token.ts'
import type {
  AuditEvent,
  CapturedRequest,
  CarriedParameters,
  DeadToken,
  MailOutbox,
  PendingLogin,
  PendingLoginStore,
  Requester,
  SessionCutoffs,
  User,
  UserStore,
  VerificationToken,
  VerificationTokenStore,
} from '../ports.ts'
import type { Settings } from '../settings/table.ts'
import { isEndedBy, loginSecond } from '../login-second.ts'
import { isStillFor } from './issued-for.ts'
import { requestMail } from './mail-request.ts'
import { carriedBy, isSameCarried, type VerificationLink } from './verification-link.ts'

type RefusedToken = Pick<DeadToken, 'userId' | 'carried'>

/** A login that waits outlives its link, so that a fresh link, asked for late, still finishes it. */
export const KEEP_LOGIN_MS = 7 * 86_400_000

/** A genuine, usable link and the account it is for. Nothing is consumed yet. */
export interface OpenedLink {
  accountId: string
  token: VerificationToken
  /** The request that the link finishes. `undefined`: none was captured, or its login was ended since (D9). */
  captured: CapturedRequest | undefined
  /** True when a login waited for this link and was ended since: the link verifies, and signs nobody in. */
  loginEnded: boolean
}

export interface LinkRefusal {
  /** `verified`: the account was verified by other means, and the link has nothing left to do (D12). */
  refusal: 'expired' | 'verified'
  /** What the page may carry on; nothing unless we signed it. */
  carried: CarriedParameters
}

export interface EmailVerification {
  /** Whether this user may not finish the login (4.8). */
  blocks(user: User): boolean
  /** Keeps the login that waits, and asks for a link. */
  block(user: User, captured: CapturedRequest, requester: Requester): Promise<void>
  /** Asks for a fresh link (4.7). Does the same for every username, and answers nothing. */
  resend(username: string, carried: CarriedParameters, requester: Requester): Promise<void>
  /** Judges a link without consuming it. */
  open(link: VerificationLink, requester: Requester): Promise<OpenedLink | LinkRefusal>
  /** unverified → verified, unused → used. `expired`: somebody else was first, or the account changed just now. */
  confirm(link: OpenedLink, requester: Requester): Promise<'confirmed' | 'expired'>
  /** Records that a confirmed link has done its work. */
  recordConfirmed(link: OpenedLink, requester: Requester): Promise<void>
}

export interface EmailVerificationPorts {
  users: UserStore
  verificationTokens: VerificationTokenStore
  pendingLogins: PendingLoginStore
  readCutoffs(accountId: string): Promise<SessionCutoffs | undefined>
  outbox: Pick<MailOutbox, 'add'>
  authorizeSig: AuthorizeSig
  audit(event: AuditEvent): Promise<void>
  settings(): Settings
  now(): Date
}

export function createEmailVerification(ports: EmailVerificationPorts): EmailVerification {
  const { users, verificationTokens, pendingLogins, outbox, authorizeSig, settings, now } = ports

  const refuse = async (token: RefusedToken, reason: string, requester: Requester) => {
    await ports.audit({
      id: newId(),
      type: 'email_verification_rejected',
      at: now(),
      accountId: token.userId,
      clientId: token.carried.clientId,
      reason,
      ...requester,
    })
    return { refusal: 'expired', carried: token.carried } as const
  }

  async function refuseDead(token: string, carried: CarriedParameters, requester: Requester) {
    const dead = await verificationTokens.findDead(hashToken(token), now())
    return dead ? refuse(dead, dead.reason, requester) : ({ refusal: 'expired', carried } as const)
  }

  return {
    blocks: (user) => settings().requireEmailVerification && !user.emailVerified,

    async block(user, captured, requester) {
      const pendingLoginId = newId()
      const createdAt = now()
      const lifetimeMs = settings().emailVerificationExpiration
      await pendingLogins.save({
        id: pendingLoginId,
        accountId: user.id,
        email: user.email,
        passwordDigest: passwordDigest(user.passwordHash),
        captured,
        createdAt,
        purgeAt: new Date(createdAt.getTime() + lifetimeMs + KEEP_LOGIN_MS),
      })
      await requestMail(
        outbox,
        {
          kind: 'email_verification',
          accountId: user.id,
          pendingLoginId,
          carried: carriedBy(captured),
          requester,
        },
        lifetimeMs,
        createdAt,
      )
    },

    resend: (username, carried, requester) =>
      requestMail(
        outbox,
        { kind: 'email_verification', identifier: username, carried, requester },
        settings().emailVerificationExpiration,
        now(),
      ),

    async open({ token, carried, signature }, requester) {
      if (!isToken(token) || !authorizeSig.verify(signature, token, carried)) {
        return { refusal: 'expired', carried: {} }
      }
      const found = await verificationTokens.findUsable(hashToken(token), now())
      if (!found) return refuseDead(token, carried, requester)
      if (!isSameCarried(found.carried, carried)) return { refusal: 'expired', carried }
      const user = await users.findById(found.userId)
      if (!user || !isStillFor(found, user)) return refuse(found, 'account_changed', requester)
      if (user.emailVerified) return { refusal: 'verified', carried: found.carried }
      const { idpAt } = (await ports.readCutoffs(user.id)) ?? {}
      if (found.pendingLoginId === undefined) {
        const loginEnded = isEndedBy(idpAt, loginSecond(found.createdAt))
        return { accountId: user.id, token: found, captured: undefined, loginEnded }
      }
      const pending = await pendingLogins.find(found.pendingLoginId)
      const lives = pending !== undefined && isLoginOf(pending, user, idpAt)
      const captured = lives ? pending.captured : undefined
      return { accountId: user.id, token: found, captured, loginEnded: !lives }
    },

    async confirm({ token }, requester) {
      const won = await users.markEmailVerified(token.userId, token.email)
      if (!won) {
        await refuse(token, 'used', requester)
        return 'expired'
      }
      await verificationTokens.markUsed(token, now())
      return 'confirmed'
    },

    recordConfirmed: ({ token }, requester) => ports.audit(completed(token, now(), requester)),
  }
}

// A login is as old as the password that it was checked with, whatever link finishes it.
function isLoginOf(pending: PendingLogin, user: User, endedAt: Date | undefined): boolean {
  const { accountId, ts } = pending.captured.login
  return (
    pending.accountId === user.id &&
    accountId === user.id &&
    isStillFor(pending, user) &&
    !isEndedBy(endedAt, ts)
  )
}

function completed(
  { id, userId, carried }: VerificationToken,
  at: Date,
  by: Requester,
): AuditEvent {
  return {
    id: `verified:${id}`,
    type: 'email_verification_completed',
    at,
    accountId: userId,
    clientId: carried.clientId,
    ...by,
  }
}
