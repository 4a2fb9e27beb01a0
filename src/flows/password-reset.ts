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
import { oneAtATime } from '../crypto/hash-queue.ts'
import { refusePassword, type RefusedPassword } from '../crypto/password.ts'
import { hashToken, isToken, newId } from '../crypto/token.ts'
import { requestNotice } from '../outbox/password-changed.ts'
import { requestMail, type MailRequest } from '../outbox/request.ts'
import type { CarriedParameters, ClaimedReset, LinkEnd, Requester, Token } from '../ports/index.ts'
import { endOf } from '../ports/token-end.ts'
import { isIssuedUnder, isStillFor, verifyByReset } from './account.ts'
import { contextOf, findLink, type FoundLink, type LinkContext, type LinkFault } from './link.ts'
import type { FlowParts } from './parts.ts'

export type PasswordReset = ReturnType<typeof createPasswordReset>

export function createPasswordReset(parts: FlowParts) {
  const inTurn = oneAtATime()
  return {
    /** Asks for a link (4.2). Does the same for every identifier, and answers nothing. */
    request: (identifier: string, carried: CarriedParameters, by: Requester, form?: string) =>
      request(parts, { identifier, carried, requester: by, form }),

    /** Judges whether a link opens the form (4.3). Consumes nothing; of a usable one, it costs two reads. */
    async open(token: string): Promise<LinkContext | RefusedLink> {
      const found = await find(parts, token)
      if (!found) return UNKNOWN
      // Nobody shall think up a password in vain; the account is judged again when it is set.
      return found.state === 'usable' ? contextOf(found.token) : faultOf(found.token, found.state)
    },

    /** Asks for a fresh link in the place of a genuine one that expired. */
    async renew(token: string, by: Requester, form?: string): Promise<LinkContext | RefusedLink> {
      const found = await find(parts, token)
      // One that is good still is as good for this as one that expired.
      if (found?.state !== 'expired' && found?.state !== 'usable') return refuse(parts, found, by)
      const { userId: accountId, carried, locale } = found.token
      const requester = { ...by, uiLocales: by.uiLocales ?? locale }
      await request(parts, { accountId, carried, requester, form })
      return contextOf(found.token)
    },

    /**
     * Sets a new password (4.4). A refusal leaves the token unspent, and so does whatever `hashPassword` throws. What was carried
     * is answered, and not whose it was: a stranger may have asked for it.
     */
    async complete(form: ResetForm, requester: Requester): Promise<ResetOutcome> {
      // Of many forms with one token one is hashed: the others find the token used, and cost no more than a look-up.
      const reset = await inTurn(form.token, () => claim(parts, form, requester))
      if (!reset) return refuse(parts, await find(parts, form.token), requester)
      if ('refusal' in reset) return reset
      if (!(await finish(parts, reset, 'request'))) return faultOf(reset, 'changed')
      return { carried: reset.carried }
    },

    /** Finishes the resets that a dead process left between two effects. */
    async sweep(): Promise<void> {
      for (;;) {
        const reset = await parts.resetTokens.takeUnfinished(parts.clock.now(), leaseEnd(parts))
        if (!reset) return
        await finish(parts, reset, 'sweep')
      }
    },
  }
}

interface ResetForm {
  token: string
  password: string
  confirmPassword: string
}

export type RefusedLink = LinkContext & { fault: LinkFault }

type ResetOutcome = RefusedLink | (Partial<RefusedPassword> & { carried: CarriedParameters })

const UNKNOWN = { fault: 'unknown', carried: {} } as const

const faultOf = (token: Token, fault: LinkFault) => ({ fault, ...contextOf(token) })

const find = ({ resetTokens, users, clock }: FlowParts, token: string) =>
  findLink(resetTokens, users, token, clock.now())

// Of a token that nobody was ever given, nothing is told.
async function refuse(
  parts: FlowParts,
  found: FoundLink | undefined,
  by: Requester,
): Promise<RefusedLink> {
  if (!found || found.state === 'usable') return UNKNOWN
  await auditRejected(parts, found.token, found.end, by)
  return faultOf(found.token, found.state)
}

function request(parts: FlowParts, asked: Omit<MailRequest, 'kind'>): Promise<void> {
  const { outbox, settings, clock } = parts
  const wanted = { kind: 'password_reset', ...asked } as const
  return requestMail(outbox, wanted, settings(), clock.now())
}

/** The effects are idempotent: to finish a slow one twice does no harm, to wait for a dead one keeps sessions alive. */
const LEASE_MS = 10_000

const leaseEnd = ({ clock }: FlowParts) => new Date(clock.now().getTime() + LEASE_MS)

/** Hashes before it claims, so that a process that dies meanwhile leaves the token good. `undefined`: the token cannot be used. */
async function claim(parts: FlowParts, form: ResetForm, by: Requester) {
  const { resetTokens, settings, clock } = parts
  if (!isToken(form.token)) return undefined
  const tokenHash = hashToken(form.token)
  const found = await resetTokens.find(tokenHash)
  if (!found || endOf(found, clock.now())) return undefined
  const { minPasswordLength: minLength, maxPasswordLength: maxLength } = settings()
  const refused = refusePassword(form.password, form.confirmPassword, { minLength, maxLength })
  if (refused) return { ...refused, carried: found.carried }

  const newHash = await parts.hashPassword(form.password)
  const leaseUntil = leaseEnd(parts)
  return resetTokens.claim(tokenHash, { newHash, by, at: clock.now(), leaseUntil })
}

/** unused → used, with the effects of section 3.3 in their order; each may be repeated. */
async function finish(parts: FlowParts, reset: ClaimedReset, by: Finisher) {
  const {
    resetTokens,
    sessions,
    outbox,
    audit,
    settings,
    clock: { now },
  } = parts
  const { id, userId, carried, claimedBy } = reset
  let { usedAt } = reset
  if (!usedAt) {
    const obstacle = await replacePassword(parts, reset) // 1
    if (obstacle) return reject(parts, reset, obstacle, by)
    usedAt = (await resetTokens.advance(id, 'used', now()))?.usedAt // 2
    if (!usedAt) throw new Error(`The reset ${id} was rejected meanwhile`)
  }
  const end = { id, at: usedAt }
  const oauth = await sessions.endOAuthSessions(userId, end) // 3
  const idp = await sessions.endIdpSessions(userId, end) // 4
  if (settings().passwordChangedEmail) await requestNotice(outbox, reset, now())
  const event = { id: `completed:${id}`, type: 'password_reset_completed', at: now() } as const
  const of = { accountId: userId, clientId: carried.clientId, details: { oauth, idp } }
  await audit({ ...event, ...of, ...claimedBy }) // 5
  if (settings().resetVerifiesEmail) await verifyByReset(parts, reset, by === 'sweep')
  await resetTokens.advance(id, 'completed', now())
  return usedAt
}

/** Why a claimed reset ends without effect; for the audit log alone. */
type Obstacle = 'account_changed' | 'newer_password'
type Finisher = 'request' | 'sweep'

// The account is judged after the claim, so that a change up to the last moment counts.
async function replacePassword(
  { users }: FlowParts,
  reset: ClaimedReset,
): Promise<Obstacle | undefined> {
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
async function reject(parts: FlowParts, reset: ClaimedReset, obstacle: Obstacle, by: Finisher) {
  const { id, userId, claimedAt, claimedBy } = reset
  if (by === 'sweep' && obstacle === 'newer_password') {
    const end = { id, at: claimedAt, isExact: true }
    await parts.sessions.endOAuthSessions(userId, end)
    await parts.sessions.endIdpSessions(userId, end)
  }
  await auditRejected(parts, reset, obstacle, claimedBy, `rejected:${id}`)
  await parts.resetTokens.advance(id, 'rejected', parts.clock.now())
  return undefined
}

function auditRejected(
  { audit, clock }: FlowParts,
  { userId: accountId, carried: { clientId } }: Token,
  reason: LinkEnd | Obstacle,
  by: Requester,
  id = newId(),
): Promise<void> {
  const event = { id, type: 'password_reset_rejected', at: clock.now() } as const
  return audit({ ...event, accountId, clientId, reason, ...by })
}
