/**
 * Password reset by e-mailed link: sections 3.1 and 3.3 of the specification, in code.
 *
 * | state  | trigger                 | here           | next        |
 * |--------|-------------------------|----------------|-------------|
 * | (none) | POST forgot-password    | `request`, and later in a worker `resolve` and `mint` | unused |
 * | unused | GET reset-password      | `isUsable`     | unused      |
 * | unused | POST reset-password     | `complete`     | used        |
 * | unused | a newer request         | `resolve`      | invalidated |
 * | unused | time passes             | compared in every look-up | expired |
 *
 * @module
 */
import { passwordDigest, refusePassword, type PasswordRefusal } from '../crypto/password.ts'
import { hashToken, isToken, newId, newToken } from '../crypto/token.ts'
import type {
  AuditEvent,
  CarriedParameters,
  IdentifiedClient,
  ClaimedReset,
  MailJob,
  MailOutbox,
  Requester,
  ResetToken,
  ResetTokenStore,
  User,
  UserStore,
} from '../ports.ts'
import type { Settings } from '../settings/table.ts'
import { findUser } from './find-user.ts'
import { secondAfter } from '../login-second.ts'
import { requestMail } from './mail-request.ts'
import type { MintedLink, NoMail, ResolvedMail } from './outcomes.ts'

const LEASE_MS = 60_000

/** Also the key of the message that the person reads. */
export type ResetRefusal = PasswordRefusal | 'token_invalid'

export interface ResetForm {
  token: string
  password: string
  confirmPassword: string
}

/** A reset that is done, and what was carried through it. */
export interface ResetDone {
  carried: CarriedParameters
}

export interface PasswordReset {
  /** Asks for a link (4.2). Does the same for every identifier, and answers nothing. */
  request(identifier: string, carried: CarriedParameters, requester: Requester): Promise<void>
  /** Looks the user up, and invalidates earlier links whether or not the mail will arrive (D20). */
  resolve(job: MailJob): Promise<ResolvedMail | NoMail>
  /** Makes a link, and stores the hash of its token. `superseded`: the user has asked for another one since. */
  mint(job: MailJob, mail: ResolvedMail): Promise<MintedLink | 'superseded'>
  /** Whether a link opens the form (4.3). */
  isUsable(token: string): Promise<boolean>
  /** Sets a new password (4.4). A refusal leaves the token unspent. */
  complete(form: ResetForm, requester: Requester): Promise<ResetDone | ResetRefusal>
  /** Finishes the resets that a dead process left between two effects (D5). */
  sweep(): Promise<void>
}

export interface PasswordResetPorts {
  users: UserStore
  resetTokens: ResetTokenStore
  outbox: Pick<MailOutbox, 'add' | 'resolve'>
  /** Effects 3 and 4: ends what the account has, and keeps what was made later than `at`. Answers how much, if it can tell. */
  sessions: {
    endOAuthSessions(accountId: string, at: Date): Promise<number | undefined>
    endIdpSessions(accountId: string, at: Date): Promise<number | undefined>
  }
  /** Drops what does not belong to a registered client and its redirect URI, and names that client. */
  identify(carried: CarriedParameters): Promise<IdentifiedClient>
  hashPassword(password: string): Promise<string>
  audit(event: AuditEvent): Promise<void>
  settings(): Settings
  /** Where links start: base URL and OAuth path, never anything from a request. */
  oauthUrl: string
  now(): Date
}

export function createPasswordReset(ports: PasswordResetPorts): PasswordReset {
  const { users, resetTokens, sessions, audit, settings, now } = ports

  /** unused → used, with the effects of section 3.3 in their order; each may be repeated. */
  async function finish(
    reset: ClaimedReset,
    expectedHash: string,
    requester?: Requester,
  ): Promise<Date | 'token_invalid'> {
    let { usedAt } = reset
    if (!usedAt) {
      if (!(await replacePassword(reset, expectedHash))) return reject(reset, requester) // 1
      usedAt = await resetTokens.markUsed(reset.id, now()) // 2
    }
    const oauth = await sessions.endOAuthSessions(reset.userId, usedAt) // 3
    const idp = await sessions.endIdpSessions(reset.userId, usedAt) // 4
    await audit({ ...completed(reset, now(), requester), details: { oauth, idp } }) // 5
    await resetTokens.complete(reset.id, now())
    return usedAt
  }

  async function replacePassword({ userId, newHash }: ClaimedReset, expectedHash: string) {
    if (newHash === undefined) return false
    if (await users.replacePasswordHash(userId, expectedHash, newHash)) return true
    return (await users.findById(userId))?.passwordHash === newHash
  }

  // A newer password won; it is not overwritten (D5).
  async function reject(reset: ClaimedReset, requester?: Requester): Promise<'token_invalid'> {
    await resetTokens.reject(reset.id, now())
    await auditRejected(reset, 'newer_password', requester)
    return 'token_invalid'
  }

  const auditRejected = (token: ResetToken, reason: string, requester?: Requester) =>
    audit({
      id: newId(),
      type: 'password_reset_rejected',
      at: now(),
      accountId: token.userId,
      reason,
      ...requester,
    })

  return {
    request: (identifier, carried, requester) =>
      requestMail(
        ports.outbox,
        { kind: 'password_reset', identifier, carried, requester },
        settings().passwordResetExpiration,
        now(),
      ),

    async resolve(job) {
      const match = await userOf(job, users)
      if (match === undefined) return 'unknown'
      if (match === 'ambiguous') return 'ambiguous'
      if (!(await ports.outbox.resolve(job, match.id))) return 'lease_lost'
      if (match.disabled) return 'disabled'
      if (match.email === undefined) return 'no_address'
      if (match.passwordHash === undefined) return 'no_password'
      await resetTokens.invalidateLive(match.id, job.requestedAt, now())
      return { user: match, email: match.email }
    },

    async mint(job, { user, email }) {
      const token = newToken()
      const createdAt = now()
      const lifetimeMs = settings().passwordResetExpiration
      const { carried, clientName } = await ports.identify(job.carried)
      const isIssued = await resetTokens.issue({
        id: newId(),
        tokenHash: hashToken(token),
        userId: user.id,
        email,
        passwordDigest: passwordDigest(user.passwordHash),
        carried,
        requestedAt: job.requestedAt,
        createdAt,
        expiresAt: new Date(createdAt.getTime() + lifetimeMs),
      })
      if (!isIssued) return 'superseded'
      return { url: `${ports.oauthUrl}/reset-password?token=${token}`, lifetimeMs, clientName }
    },

    isUsable: async (token) =>
      isToken(token) && (await resetTokens.findUsable(hashToken(token), now())) !== undefined,

    async complete({ token, password, confirmPassword }, requester) {
      const found = isToken(token)
        ? await resetTokens.findUsable(hashToken(token), now())
        : undefined
      if (!found) return 'token_invalid'
      const refusal = refusePassword(password, confirmPassword, limits(settings()))
      if (refusal) return refusal

      const newHash = await ports.hashPassword(password)
      const user = await users.findById(found.userId)
      if (!user || !user.passwordHash || !isStillFor(found, user)) {
        await auditRejected(found, 'account_changed', requester)
        return 'token_invalid'
      }
      const leaseUntil = new Date(now().getTime() + LEASE_MS)
      const reset = await resetTokens.claim(found.tokenHash, newHash, now(), leaseUntil)
      if (!reset) return 'token_invalid'
      const usedAt = await finish(reset, user.passwordHash, requester)
      if (usedAt === 'token_invalid') return usedAt
      await secondAfter(usedAt)
      return { carried: reset.carried }
    },

    async sweep() {
      for (;;) {
        const leaseUntil = new Date(now().getTime() + LEASE_MS)
        const reset = await resetTokens.takeUnfinished(now(), leaseUntil)
        if (!reset) return
        const user = await users.findById(reset.userId)
        const expectedHash = user && isIssuedUnder(reset, user) ? user.passwordHash : undefined
        await finish(reset, expectedHash ?? '')
      }
    },
  }
}

function userOf({ accountId, identifier }: MailJob, users: UserStore) {
  if (accountId !== undefined) return users.findById(accountId)
  return identifier === undefined ? undefined : findUser(users, identifier)
}

function limits({ minPasswordLength, maxPasswordLength }: Settings) {
  return { minLength: minPasswordLength, maxLength: maxPasswordLength }
}

// Void once the address, the password or the enabled state changed after the token was issued (D6).
function isStillFor(token: ResetToken, user: User): boolean {
  return !user.disabled && user.email === token.email && isIssuedUnder(token, user)
}

function isIssuedUnder(token: ResetToken, user: User): boolean {
  return passwordDigest(user.passwordHash) === token.passwordDigest
}

function completed(reset: ClaimedReset, at: Date, requester?: Requester): AuditEvent {
  const { clientId } = reset.carried
  return {
    id: `completed:${reset.id}`,
    type: 'password_reset_completed',
    at,
    accountId: reset.userId,
    clientId,
    ...requester,
  }
}
