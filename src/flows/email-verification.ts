/**
 * E-mail verification during the login: section 3.2 of the specification, in code.
 *
 * | state  | trigger                          | here                                                       | next   |
 * |--------|----------------------------------|------------------------------------------------------------|--------|
 * | (none) | POST login, address not verified | `blocks`, `block`; later in a worker, `verification-mail`  | unused |
 * | (none) | POST resend-verification         | `resend`; later in a worker, `verification-mail`           | unused |
 * | unused | GET verify-email                 | `open`, then `confirm`                                     | used   |
 * | used   | any use                          | `open` answers `expired`                                   | used   |
 * | any    | a new link is asked for from it  | `renew`; later in a worker, `verification-mail`            |        |
 *
 * @module
 */
import type { AuthorizeSig } from '../crypto/authorize-sig.ts'
import { hashToken, isToken } from '../crypto/token.ts'
import type {
  AuditEvent,
  CapturedRequest,
  CarriedParameters,
  DeadToken,
  MailOutbox,
  PendingLoginStore,
  Requester,
  SessionCutoffs,
  User,
  UserStore,
  VerificationToken,
  VerificationTokenStore,
} from '../ports/index.ts'
import type { Settings } from '../settings/table.ts'
import { isStillFor } from './account.ts'
import { inLoginTurn, isLoginOf, MOST_LOGINS, newPendingLogin } from './waiting-login.ts'
import { requestMail } from '../outbox/request.ts'
import { completed, rejected, type RejectedToken } from './verification-events.ts'
import { carriedBy, isSameCarried, type VerificationLink } from './link.ts'

/** Why a link does nothing. `unknown`: nobody was ever given it, or it was altered. `changed`: the account changed since. */
export type LinkFault = 'unknown' | 'expired' | 'used' | 'changed'

/** A genuine, usable link and the account it is for. Nothing is consumed yet. */
export interface OpenedLink {
  accountId: string
  token: VerificationToken
  /** The request that the link finishes. `undefined`: none was captured, or its login was ended since. */
  captured: CapturedRequest | undefined
  /** True when a login waited for this link and was ended since: the link verifies, and signs nobody in. */
  loginEnded: boolean
  /** Whether the browser that opened it is the one that logged in. */
  isFirstBrowser: boolean
  /** Whether a window in another browser waits to go on. */
  isAwaited: boolean
}

export interface LinkRefusal {
  /** `verified`: the account was verified by other means, and the link has nothing left to do. */
  refusal: 'expired' | 'verified'
  reason: LinkFault
  /** What the page may carry on; nothing unless we signed it. */
  carried: CarriedParameters
}

/** Who opens a link, in which browser. */
export interface LinkOpener extends Requester {
  /** The cookie of the browser. `undefined`: it has none. */
  browser: string | undefined
}

export interface EmailVerification {
  /** Whether this user may not finish the login (4.8). */
  blocks(user: User): boolean
  /**
   * Keeps the login that waits, and asks for a link. Answers the id of the pending login: of the same request in the same browser
   * always the same. `undefined`: the request is too long to be kept, and nothing was done.
   */
  block(user: User, captured: CapturedRequest, by: LinkOpener): Promise<string | undefined>
  /** Asks for a fresh link (4.7). Does the same for every username, and answers nothing. */
  resend(username: string, carried: CarriedParameters, requester: Requester): Promise<void>
  /** Asks for a fresh link in the place of a genuine one that expired. */
  renew(link: VerificationLink, requester: Requester): Promise<'requested' | LinkRefusal>
  /** Whether we signed exactly this link (5.4). */
  isGenuine(link: VerificationLink): boolean
  /** Judges a link without consuming it. */
  open(link: VerificationLink, opener: LinkOpener): Promise<OpenedLink | LinkRefusal>
  /**
   * unverified → verified, unused → used, and then `goOn`. `expired`: somebody else was first, or the account changed just now.
   * `continued`: the waiting window of this browser has taken the turn of the login, which `takesTurn` asks for. In neither is
   * `goOn` called; where that fails in its turn, the turn is given back.
   */
  confirm(
    link: OpenedLink,
    requester: Requester,
    options: { takesTurn: boolean; goOn: () => Promise<void> },
  ): Promise<'confirmed' | 'expired' | 'continued'>
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

  const refuse = async (token: RejectedToken, reason: LinkFault, event: string, by: Requester) => {
    await ports.audit(rejected(token, event, now(), by))
    return { refusal: 'expired', reason, carried: token.carried } as const
  }

  const refuseUnknown = (carried: CarriedParameters) =>
    ({ refusal: 'expired', reason: 'unknown', carried }) as const

  const isGenuine = ({ token, carried, signature }: VerificationLink) =>
    isToken(token) && authorizeSig.verify(signature, token, carried)

  /** Why a genuine link that is not usable does nothing: once the address is verified, because that was done. */
  async function faultOf(dead: DeadToken): Promise<LinkFault> {
    if (dead.reason === 'used') return 'used'
    const user = await users.findById(dead.userId)
    if (user?.emailVerified && user.email === dead.email) return 'used'
    const { email, passwordDigest = '' } = dead
    return user && isStillFor({ email, passwordDigest }, user) ? 'expired' : 'changed'
  }

  return {
    isGenuine,

    blocks: (user) => settings().requireEmailVerification && !user.emailVerified,

    async block(user, captured, { browser, ...requester }) {
      const createdAt = now()
      const lifetimeMs = settings().emailVerificationExpiration
      const login = newPendingLogin(user, captured, browser, createdAt, lifetimeMs)
      if (!login) return undefined
      await pendingLogins.save(login, MOST_LOGINS)
      const request = {
        accountId: user.id,
        pendingLoginId: login.id,
        carried: carriedBy(captured),
        requester,
      }
      await requestMail(outbox, { kind: 'email_verification', ...request }, lifetimeMs, createdAt)
      return login.id
    },

    resend: (username, carried, requester) =>
      requestMail(
        outbox,
        { kind: 'email_verification', identifier: username, carried, requester },
        settings().emailVerificationExpiration,
        now(),
      ),

    async renew(link, requester) {
      if (!isGenuine(link)) return refuseUnknown({})
      const tokenHash = hashToken(link.token)
      const dead = await verificationTokens.findDead(tokenHash, now())
      const live = dead ? undefined : await verificationTokens.findUsable(tokenHash, now())
      const token = dead ?? live
      if (!token || !isSameCarried(token.carried, link.carried)) return refuseUnknown(link.carried)
      const fault = await faultOf(dead ?? { ...token, reason: 'expired' })
      if (fault !== 'expired') return refuse({ ...token, tokenHash }, fault, fault, requester)
      const { userId: accountId, pendingLoginId, carried } = token
      await requestMail(
        outbox,
        {
          kind: 'email_verification',
          accountId,
          ...(pendingLoginId !== undefined && { pendingLoginId }),
          carried,
          requester,
        },
        settings().emailVerificationExpiration,
        now(),
      )
      return 'requested'
    },

    async open(link, { browser, ...requester }) {
      if (!isGenuine(link)) return refuseUnknown({})
      const tokenHash = hashToken(link.token)
      const found = await verificationTokens.findUsable(tokenHash, now())
      if (!found) {
        const dead = await verificationTokens.findDead(tokenHash, now())
        if (!dead) return refuseUnknown(link.carried)
        return refuse({ ...dead, tokenHash }, await faultOf(dead), dead.reason, requester)
      }
      if (!isSameCarried(found.carried, link.carried)) return refuseUnknown(link.carried)
      const user = await users.findById(found.userId)
      if (!user || !isStillFor(found, user)) {
        return refuse(found, 'changed', 'account_changed', requester)
      }
      if (user.emailVerified) return { refusal: 'verified', reason: 'used', carried: found.carried }
      const opened = { accountId: user.id, token: found, captured: undefined }
      if (found.pendingLoginId === undefined) {
        return { ...opened, loginEnded: false, isFirstBrowser: false, isAwaited: false }
      }
      const { idpAt } = (await ports.readCutoffs(user.id)) ?? {}
      const pending = await pendingLogins.find(found.pendingLoginId)
      const isFirstBrowser = browser !== undefined && pending?.browserHash === hashToken(browser)
      const login = pending && isLoginOf(pending, user, idpAt) ? pending : undefined
      const hasWindow = login?.browserHash !== undefined && !login.continuedAt
      return {
        ...opened,
        captured: login?.captured,
        loginEnded: !login,
        isFirstBrowser,
        isAwaited: hasWindow && !isFirstBrowser,
      }
    },

    async confirm({ token, isFirstBrowser }, requester, { takesTurn, goOn }) {
      const { userId, email, pendingLoginId } = token
      const won = await users.markEmailVerified(userId, email)
      if (!won) {
        await refuse(token, 'used', 'used', requester)
        return 'expired'
      }
      await verificationTokens.markUsed(token, now())
      const tellWindows = () => pendingLogins.markVerified(userId, email, now())
      const finish = async () => {
        await tellWindows()
        await goOn()
      }
      // The turn is taken before the waiting window can see that it may go on.
      const hasTurn = takesTurn && isFirstBrowser && pendingLoginId !== undefined
      if (!hasTurn) await finish()
      else if (!(await inLoginTurn(pendingLogins, pendingLoginId, now(), finish))) {
        await tellWindows()
        return 'continued'
      }
      return 'confirmed'
    },

    recordConfirmed: ({ token }, requester) => ports.audit(completed(token, now(), requester)),
  }
}
