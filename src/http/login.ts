/** What the login page of a host calls. It keeps a login that has to wait, and finishes the others. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Clock } from '../clock.ts'
import type { Requester, User, UserStore } from '../contract/index.ts'
import { hashOf } from '../contract/users.ts'
import { passwordDigest } from '../crypto/password.ts'
import { must } from '../errors.ts'
import { KEEP_LOGIN_MS, type LoginResult } from '../store/logins.ts'
import type { Interactions } from '../oidc/interactions.ts'
import type { SeenLogins } from '../oidc/seen-logins.ts'
import { defined } from '../store/kind.ts'
import { loginSecond } from '../store/cutoffs.ts'
import type { BrowserCookie } from './browser.ts'
import { errorPage, type PageParts } from './pages.ts'
import { isCrossSite } from './requester.ts'
import { blockedPage, type WaitingLoginParts } from './waiting-login.ts'

/** A clock that is set back during a request is no reason to refuse a login. */
const CLOCK_STEP_SECONDS = 60

/** A login whose credentials the host has checked. */
export interface CheckedLogin {
  /**
   * The user, with the hash that the password was compared with; if you rehash, do it afterwards. Or only the id: then the clocks of the
   * processes decide whether a reset came later, so they should agree to the second. [Which to pass after a
   * second page](questions.md#a-second-factor).
   */
  account: User | string
  /** From `loginStarted()`, called before the password hash was read. */
  startedAt: number
  acr?: string
  amr?: string[]
  /** `false`: the session ends with the browser. */
  remember?: boolean
}

/** The outcome of a login, for a login page that posts by script. */
export type LoginDecision =
  /** The next address for the browser: `window.location.assign(location)`. */
  { location: string } | { blocked: BlockedByEmail | { reason: NotKept } }

/** Why a login that would have to wait is not kept. `refused`: the browser says that another origin sent the form. */
type NotKept = 'request_too_long' | 'refused'

/** A login that waits until its address is verified. */
export interface BlockedByEmail {
  reason: 'email_unverified'
  /** Our page that waits in this browser. */
  location: string
  /** For how many milliseconds the mailed link works. */
  lifetimeMs: number
  /** After how many milliseconds the user may ask for the next mail. `undefined`: at once. */
  waitMs: number | undefined
}

/** What a login page calls. */
export interface Login {
  /** Call it first in your login POST, and pass its result to `finishLogin`. It is a time in whole seconds. */
  loginStarted(): number
  /**
   * If the user may not finish the login (4.8): answers with the verification page in mode `blocked`, and sends a link. An authorization
   * request of more than 32 KiB cannot be kept, and is refused with status 400. So is a form that another origin sent, with status 403: a
   * page cannot make a browser wait for the login of another person.
   *
   * Prefer `finishLogin`. If you finish the login yourself, and the clocks of your processes differ, a reset may not end that login's session.
   *
   * @returns `true`: a page was sent, stop. `false`: finish the login yourself, with `ts: startedAt` in the result.
   */
  blockUnverified(req: IncomingMessage, res: ServerResponse, login: CheckedLogin): Promise<boolean>
  /** Answers your login POST: with the page that waits for the verification, or with the provider's answer to the finished login. */
  finishLogin(req: IncomingMessage, res: ServerResponse, login: CheckedLogin): Promise<void>
  /**
   * The same for a login page that posts by script. It returns the outcome and sends no response: it only sets a cookie on it. The request
   * must come from the login page itself, with its cookies.
   */
  decideLogin(
    req: IncomingMessage,
    res: ServerResponse,
    login: CheckedLogin,
  ): Promise<LoginDecision>
}

interface LoginParts extends PageParts, Pick<WaitingLoginParts, 'waitingLogins' | 'cooldown'> {
  interactions: Interactions
  sessions: Pick<SeenLogins, 'cutoffsSeenAtLogin'>
  users: UserStore
  browserCookie: BrowserCookie
  requesterOf(req: IncomingMessage): Requester
  origin: string
  oauthUrl: string
  clock: Clock
}

export function createLogin(parts: LoginParts): Login {
  const { interactions, waitingLogins, pages, settings, oauthUrl, clock } = parts

  /** Keeps a login that has to wait, and asks for its link. Without `blocked`, the login may be finished. */
  async function checkLogin(req: IncomingMessage, res: ServerResponse, login: CheckedLogin) {
    const result = await resultOf(parts, login)
    const user = await unverifiedUser(parts, login.account)
    if (!user) return { result }
    if (isCrossSite(req, parts.origin)) return { result, blocked: 'refused' as const }

    const captured = { ...(await interactions.capture(req, res)), login: result }
    const waitsForMs = settings().emailVerificationExpiration + KEEP_LOGIN_MS
    const isRemembered = result.remember !== false
    const browser = parts.browserCookie.keep(req, res, isRemembered ? waitsForMs : undefined)
    const requester = parts.requesterOf(req)
    const waiting = await waitingLogins.block(user, captured, requester, browser)
    if (!waiting) return { result, blocked: 'request_too_long' as const }
    const waitMs = await parts.cooldown.count('email_verification', user.username, requester)
    const awaited = await waitingLogins.awaitedOf(user)
    return { result, blocked: { user, login: waiting, waitMs, awaited } }
  }

  /** `undefined`: the login is blocked, and a page was sent. */
  async function unlessBlocked(req: IncomingMessage, res: ServerResponse, login: CheckedLogin) {
    const { result, blocked } = await checkLogin(req, res, login)
    if (!blocked) return result
    const isKept = typeof blocked === 'object'
    pages.send(req, res, isKept ? await blockedPage(parts, blocked) : errorPage(blocked))
    return undefined
  }

  return {
    loginStarted: () => loginSecond(clock.now()),

    blockUnverified: async (req, res, login) => !(await unlessBlocked(req, res, login)),

    async finishLogin(req, res, login) {
      const result = await unlessBlocked(req, res, login)
      if (result) await interactions.finish(req, res, result)
    },

    async decideLogin(req, res, login) {
      const { result, blocked } = await checkLogin(req, res, login)
      if (!blocked) return { location: await interactions.redirectUrl(req, res, result) }
      if (typeof blocked === 'string') return { blocked: { reason: blocked } }
      const { login: waiting, waitMs } = blocked
      const { emailVerificationExpiration: lifetimeMs } = settings()
      const location = `${oauthUrl}/verify-email/waiting?login=${waiting.id}`
      return { blocked: { reason: 'email_unverified', location, lifetimeMs, waitMs } }
    },
  }
}

/** The user whose login is blocked, with the hash that the waiting login is tied to. */
async function unverifiedUser(
  { users, waitingLogins, settings }: LoginParts,
  account: User | string,
) {
  if (!settings().requireEmailVerification) return undefined
  const given = typeof account === 'string' ? await users.findById(account) : account
  if (!given || !waitingLogins.mustVerify(given)) return undefined
  // Some hosts remove the hash from the user that their login hands on.
  const user = hashOf(given) === undefined ? ((await users.findById(given.id)) ?? given) : given
  return waitingLogins.mustVerify(user) ? user : undefined
}

async function resultOf(
  { sessions, clock }: LoginParts,
  { account, startedAt, acr, amr, remember }: CheckedLogin,
): Promise<LoginResult> {
  const now = loginSecond(clock.now())
  // A time in milliseconds, or in the future, would outlive every cut-off to come.
  const isSecond = Number.isInteger(startedAt) && startedAt <= now + CLOCK_STEP_SECONDS
  must(isSecond, 'startedAt must be the result of loginStarted()')
  const ts = Math.min(startedAt, now)
  const [accountId, hash] = typeof account === 'string' ? [account] : [account.id, hashOf(account)]
  const digest = hash === undefined ? undefined : passwordDigest(hash)
  const accountFlowsSeen = await sessions.cutoffsSeenAtLogin(accountId, ts, digest)
  return { accountId, ts, accountFlowsSeen, ...defined({ acr, amr, remember }) }
}
