/**
 * Password reset by e-mailed link: sections 3.1 and 3.3 of the specification, in code.
 *
 * | state  | trigger              | here                                       | next        |
 * |--------|----------------------|--------------------------------------------|-------------|
 * | (none) | POST forgot-password | `request`; later in a worker, `reset-mail` | unused      |
 * | unused | GET reset-password   | `open`                                     | unused      |
 * | unused | POST reset-password  | `complete`                                 | used        |
 * | unused | a newer request      | in a worker, `reset-mail`                  | invalidated |
 * | unused | time passes          | compared in every look-up                  | expired     |
 * | any    | a new link from it   | `renew`; later in a worker, `reset-mail`   |             |
 *
 * @module
 */
import type { Clock } from '../clock.ts'
import { refusePassword, type PasswordRefusal } from '../crypto/password.ts'
import { hashToken, isToken, newId } from '../crypto/token.ts'
import type {
  AccountSessions,
  AuditEvent,
  CarriedParameters,
  ClaimedReset,
  DeadToken,
  MailOutbox,
  Requester,
  ResetTokenStore,
  UserStore,
} from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'
import { isIssuedUnder, isStillFor } from './account.ts'
import { oneAtATime } from '../crypto/hash-queue.ts'
import { secondAfter } from '../ports/login-second.ts'
import { requestMail } from '../outbox/request.ts'
import { requestNotice } from '../outbox/password-changed.ts'

/** The effects are idempotent: to finish a slow one twice does no harm, to wait for a dead one keeps sessions alive. */
const LEASE_MS = 10_000

/**
 * Why a link does nothing. `unknown`: nobody was ever given it; all others are told to those alone who hold the token.
 * `superseded`: a newer one took its place. `changed`: the account changed since.
 */
export type ResetLinkFault = 'unknown' | 'expired' | 'used' | 'superseded' | 'changed'

type RejectedToken = Pick<DeadToken, 'userId' | 'carried'>

/** Why a claimed reset ends without effect; for the audit log alone. */
type Obstacle = 'account_changed' | 'newer_password'

export interface ResetForm {
  token: string
  password: string
  confirmPassword: string
}

/** A reset that is done, and what was carried through it: not whose it was, as a stranger may have asked for it. */
export interface ResetDone {
  carried: CarriedParameters
}

export interface RefusedLink {
  fault: ResetLinkFault
}

/** A form whose token is good, and still unspent. */
export interface RefusedPassword {
  /** Also the key of the message that the person reads. */
  refusal: PasswordRefusal
}

/** `dead`: the token that it was. `undefined`: there never was one. */
interface Unusable extends RefusedLink {
  dead?: DeadToken
}

/** The account as a token was issued for it. */
type IssuedToken = Pick<DeadToken, 'userId' | 'email' | 'passwordDigest'>

export interface PasswordReset {
  /** Asks for a link (4.2). Does the same for every identifier, and answers nothing. */
  request(identifier: string, carried: CarriedParameters, requester: Requester): Promise<void>
  /** Asks for a fresh link in the place of a genuine one that expired. */
  renew(token: string, requester: Requester): Promise<'requested' | RefusedLink>
  /** Judges whether a link opens the form (4.3). Consumes nothing; of a usable one, it costs two reads. */
  open(token: string): Promise<'usable' | RefusedLink>
  /** Sets a new password (4.4). A refusal leaves the token unspent, and so does whatever `hashPassword` throws. */
  complete(
    form: ResetForm,
    requester: Requester,
  ): Promise<ResetDone | RefusedPassword | RefusedLink>
  /** Finishes the resets that a dead process left between two effects. */
  sweep(): Promise<void>
}

export interface PasswordResetPorts {
  users: UserStore
  resetTokens: ResetTokenStore
  outbox: Pick<MailOutbox, 'add'>
  sessions: AccountSessions
  hashPassword(password: string): Promise<string>
  audit(event: AuditEvent): Promise<void>
  settings(): Settings
  clock: Clock
}

export function createPasswordReset(ports: PasswordResetPorts): PasswordReset {
  const { users, resetTokens, sessions, audit, settings, clock } = ports
  const { now } = clock
  const leaseEnd = () => new Date(now().getTime() + LEASE_MS)
  const inTurn = oneAtATime()

  /** unused → used, with the effects of section 3.3 in their order; each may be repeated. */
  async function finish(reset: ClaimedReset, by: 'request' | 'sweep') {
    const { userId } = reset
    let { usedAt } = reset
    if (!usedAt) {
      const obstacle = await replacePassword(reset) // 1
      if (obstacle) return reject(reset, obstacle, by)
      usedAt = await resetTokens.markUsed(reset.id, now()) // 2
    }
    const oauth = await sessions.endOAuthSessions(userId, usedAt) // 3
    const idp = await sessions.endIdpSessions(userId, usedAt) // 4
    if (settings().passwordChangedEmail) await requestNotice(ports.outbox, reset, now())
    await audit({ ...completed(reset, now()), details: { oauth, idp } }) // 5
    await resetTokens.complete(reset.id, now())
    return usedAt
  }

  // The account is judged after the claim, so that a change up to the last moment counts.
  async function replacePassword(reset: ClaimedReset): Promise<Obstacle | undefined> {
    const { userId, newHash } = reset
    const user = await users.findById(userId)
    if (!user || newHash === undefined) return 'account_changed'
    if (user.passwordHash === newHash) return undefined
    if (user.passwordHash === undefined || !isIssuedUnder(reset, user)) return 'newer_password'
    if (!isStillFor(reset, user)) return 'account_changed'
    if (await users.replacePasswordHash(userId, user.passwordHash, newHash)) return undefined
    return (await users.findById(userId))?.passwordHash === newHash ? undefined : 'newer_password'
  }

  // A newer password is not overwritten. Where a dead process may have replaced the one before, and somebody else that one
  // again, what was signed in before ends all the same.
  async function reject(reset: ClaimedReset, obstacle: Obstacle, by: 'request' | 'sweep') {
    if (by === 'sweep' && obstacle === 'newer_password') {
      await sessions.endOAuthSessions(reset.userId, reset.claimedAt, true)
      await sessions.endIdpSessions(reset.userId, reset.claimedAt, true)
    }
    await auditRejected(reset, obstacle, reset.claimedBy, `rejected:${reset.id}`)
    await resetTokens.reject(reset.id, now())
    return undefined
  }

  const auditRejected = (token: RejectedToken, reason: string, by: Requester, id = newId()) =>
    audit({
      id,
      type: 'password_reset_rejected',
      at: now(),
      accountId: token.userId,
      clientId: token.carried.clientId,
      reason,
      ...by,
    })

  const findUsable = async (token: string) =>
    isToken(token) ? resetTokens.findUsable(hashToken(token), now()) : undefined

  async function faultOf(dead: DeadToken, token: string): Promise<ResetLinkFault> {
    if (dead.reason === 'used') return 'used'
    if (dead.reason === 'invalidated') {
      const history = await resetTokens.findHistory(hashToken(token))
      return history?.claimedAt ? 'changed' : 'superseded'
    }
    return (await isStillOfItsAccount(dead)) ? 'expired' : 'changed'
  }

  async function isStillOfItsAccount(token: IssuedToken): Promise<boolean> {
    const { userId, email, passwordDigest = '' } = token
    const user = await users.findById(userId)
    return user !== undefined && isStillFor({ email, passwordDigest }, user)
  }

  async function whyUnusable(token: string): Promise<Unusable> {
    const dead = isToken(token) ? await resetTokens.findDead(hashToken(token), now()) : undefined
    return dead ? { dead, fault: await faultOf(dead, token) } : { fault: 'unknown' }
  }

  // Of a token that nobody was ever given, nothing is told.
  async function refuse({ dead, fault }: Unusable, requester: Requester): Promise<RefusedLink> {
    if (dead) await auditRejected(dead, dead.reason, requester)
    return { fault }
  }

  const refuseToken = async (token: string, requester: Requester) =>
    refuse(await whyUnusable(token), requester)

  /** Hashes before it claims, so that a process that dies meanwhile leaves the token good. `undefined`: the token cannot be used. */
  async function claim({ token, password, confirmPassword }: ResetForm, by: Requester) {
    const found = await findUsable(token)
    if (!found) return undefined
    const { minPasswordLength: minLength, maxPasswordLength: maxLength } = settings()
    const refusal = refusePassword(password, confirmPassword, { minLength, maxLength })
    if (refusal) return { refusal }

    const newHash = await ports.hashPassword(password)
    return resetTokens.claim(found.tokenHash, { newHash, by, at: now(), leaseUntil: leaseEnd() })
  }

  return {
    request: (identifier, carried, requester) =>
      requestMail(
        ports.outbox,
        { kind: 'password_reset', identifier, carried, requester },
        settings().passwordResetExpiration,
        now(),
      ),

    async renew(token, requester) {
      const usable = await findUsable(token)
      if (usable && !(await isStillOfItsAccount(usable))) {
        await auditRejected(usable, 'account_changed', requester)
        return { fault: 'changed' }
      }
      const why: Unusable = usable
        ? { fault: 'expired', dead: { ...usable, reason: 'expired' } }
        : await whyUnusable(token)
      if (!why.dead || why.fault !== 'expired') return refuse(why, requester)
      const { userId: accountId, carried } = why.dead
      await requestMail(
        ports.outbox,
        { kind: 'password_reset', accountId, carried, requester },
        settings().passwordResetExpiration,
        now(),
      )
      return 'requested'
    },

    async open(token) {
      const found = await findUsable(token)
      if (!found) return { fault: (await whyUnusable(token)).fault }
      // Nobody shall think up a password in vain; the account is judged again when it is set.
      return (await isStillOfItsAccount(found)) ? 'usable' : { fault: 'changed' }
    },

    async complete(form, requester) {
      // Of many forms with one token one is hashed: the others find the token used, and cost no more than a look-up.
      const reset = await inTurn(form.token, () => claim(form, requester))
      if (!reset) return refuseToken(form.token, requester)
      if ('refusal' in reset) return reset
      const usedAt = await finish(reset, 'request')
      if (!usedAt) return { fault: 'changed' }
      await secondAfter(clock, usedAt)
      return { carried: reset.carried }
    },

    async sweep() {
      for (;;) {
        const reset = await resetTokens.takeUnfinished(now(), leaseEnd())
        if (!reset) return
        await finish(reset, 'sweep')
      }
    },
  }
}

function completed({ id, userId, carried, claimedBy }: ClaimedReset, at: Date): AuditEvent {
  return {
    id: `completed:${id}`,
    type: 'password_reset_completed',
    at,
    accountId: userId,
    clientId: carried.clientId,
    ...claimedBy,
  }
}
