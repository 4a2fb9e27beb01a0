/** The page that logged in and waits for its address to be verified. It goes on once, with the original request of the client. */
import { passwordDigest } from '../crypto/password.ts'
import { hashToken, idOf, isToken, newId } from '../crypto/token.ts'
import type { CapturedRequest, SessionCutoffs, User } from '../ports/index.ts'
import { isEnded } from '../ports/login-end.ts'
import { WEEK_MS } from '../ports/week.ts'
import type { PendingLogin } from '../records/index.ts'
import { isVoid } from '../records/logins.ts'
import { isStillFor } from './account.ts'
import type { FlowParts } from './parts.ts'
import { tryCode } from './login-code.ts'

/** The page that asks: the login that it names, and the cookie of its browser. */
export interface WaitingPage {
  pendingLoginId: string
  browser: string | undefined
}

/** A login that may go on now, or still waits. */
export interface WaitingLogin {
  status: 'waiting' | 'verified'
  user: User
  captured: CapturedRequest
  login: PendingLogin
}

/** A login that goes on no more. */
export interface FinishedLogin {
  status: 'continued' | 'ended'
  /** `undefined`: it was never this browser's. */
  captured: CapturedRequest | undefined
}

export function createWaitingLogins(parts: FlowParts) {
  const { users, pendingLogins, readCutoffs, settings, clock } = parts

  async function findOwn({ pendingLoginId, browser }: WaitingPage) {
    if (browser === undefined || !isToken(browser)) return undefined
    const pending = await pendingLogins.find({ id: pendingLoginId })
    const isOwn = pending?.browserHash === hashToken(browser) && waitsUntil(pending) > clock.now()
    return isOwn ? pending : undefined
  }

  // Each turn has a name, so that nobody gives back the turn of another.
  async function inTurn({ pendingLoginId }: WaitingPage, goOn: () => Promise<void>) {
    const turn = newId()
    try {
      if (!(await pendingLogins.setTurn(pendingLoginId, turn, clock.now()))) return false
      await goOn()
      return true
    } catch (error) {
      // Where that fails too, the turn stays taken: the next sign-in goes through.
      await pendingLogins.setTurn(pendingLoginId, turn, undefined).catch(() => {})
      throw error
    }
  }

  return {
    /** Judges account, address, password and cut-offs as they are now. Does not take the turn. */
    async find(waiting: WaitingPage): Promise<WaitingLogin | FinishedLogin> {
      const pending = await findOwn(waiting)
      if (!pending) return { status: 'ended', captured: undefined }
      const { captured } = pending
      if (pending.continuedAt) return { status: isVoid(pending) ? 'ended' : 'continued', captured }
      const user = await users.findById(pending.accountId)
      const cutoffs = await readCutoffs(pending.accountId)
      if (!user || !isLoginOf(pending, user, cutoffs)) return { status: 'ended', captured }
      const mayGoOn = user.emailVerified || !settings().requireEmailVerification
      // Another login ended this one before it verified, perhaps since we looked.
      if (mayGoOn && !(await findOwn(waiting).then((now) => now && !isVoid(now))))
        return { status: 'ended', captured }
      const status = mayGoOn ? 'verified' : 'waiting'
      return { status, user, captured, login: pending }
    },

    /** Whether its person has left it. */
    async isLeft(id: string): Promise<boolean> {
      const pending = await pendingLogins.find({ id })
      return !pending || (isVoid(pending) && pending.continuedAt !== undefined)
    },

    /** Judges the code that was typed into its page. */
    tryCode: tryCode.bind(undefined, parts),

    /**
     * Goes on, in the one turn. Where that fails, or nobody knows whether the turn was taken, the turn is given back. `false`: it was taken
     * before, and nothing was done.
     */
    inTurn,

    /** Likewise, and ends the login: its link verifies, and signs nobody in. */
    leave: (waiting: WaitingPage, goOn: () => Promise<void>) =>
      inTurn(waiting, async () => {
        await goOn()
        await pendingLogins.change({ id: waiting.pendingLoginId }, { isVoid: true })
      }),
  }
}

/** A login that waits (`pending_logins`) outlives its link, so that a fresh link, asked for late, still finishes it. */
export const KEEP_LOGIN_MS = WEEK_MS

/** Of one account. The newest: somebody who knows its password could otherwise keep its owner out for as long as logins are kept. */
export const MAX_LOGINS = 10

/** More than any request that comes in an address. */
const MAX_CAPTURED_BYTES = 32_768

/**
 * A login that begins to wait. The same request from the same browser is the same login: its earlier link still finishes it,
 * even if this request gets no mail. `undefined`: the request is too long to be kept.
 */
export function newPendingLogin(
  { id: accountId, email, passwordHash }: User,
  captured: CapturedRequest,
  browser: string | undefined,
  createdAt: Date,
  lifetimeMs: number,
): PendingLogin | undefined {
  if (Buffer.byteLength(JSON.stringify(captured)) > MAX_CAPTURED_BYTES) return undefined
  const checked = { accountId, email, passwordDigest: passwordDigest(passwordHash) }
  const { params, deviceCode, login } = captured
  // Once its account was ended, the same request is another login: the one before stays ended.
  const asked = [browser, checked, params, deviceCode, login.accountFlowsSeen]
  return {
    ...checked,
    id: browser === undefined ? newId() : idOf(asked),
    captured,
    browserHash: browser === undefined ? undefined : hashToken(browser),
    createdAt,
    continuedAt: undefined,
    purgeAt: new Date(createdAt.getTime() + lifetimeMs + KEEP_LOGIN_MS),
  }
}

/** Whether it waits on a page, where its code can be typed. */
export function isWaitingPage({ browserHash, continuedAt }: PendingLogin): boolean {
  return browserHash !== undefined && !continuedAt
}

/** Until when its page waits: as long as the latest link works that finishes it. On a shared computer that is long enough. */
function waitsUntil({ purgeAt }: PendingLogin): Date {
  return new Date(purgeAt.getTime() - KEEP_LOGIN_MS)
}

/** Whether it is a login of this account still: it is as old as the password that it was checked with, whatever finishes it. */
export function isLoginOf(
  pending: PendingLogin,
  user: User,
  cutoffs: SessionCutoffs | undefined,
): boolean {
  const { accountId, ts: second, accountFlowsSeen: seen } = pending.captured.login
  return (
    pending.accountId === user.id &&
    accountId === user.id &&
    isStillFor(pending, user) &&
    !isEnded('idp', { second, seen }, cutoffs)
  )
}
