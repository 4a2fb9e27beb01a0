/** The page of a login that waits for its address to be verified. The login goes on once, with the original request of the client. */
import { passwordDigest } from '../crypto/password.ts'
import { hashToken, idOf, isToken, newId } from '../crypto/token.ts'
import { isVoid, type CapturedRequest } from '../store/logins.ts'
import { isEnded, type SessionCutoffs } from '../store/cutoffs.ts'
import type { User, UserStore } from '../contract/index.ts'
import { WEEK_MS } from '../store/kind.ts'
import type { PendingLogin, PendingLoginStore } from '../store/index.ts'
import { isUnchanged } from './account.ts'
import type { Environment } from './audit.ts'
import type { ReadCutoffs } from './link.ts'

/** The login that the page names, and the cookie of its browser. */
export interface WaitingPage {
  pendingLoginId: string
  browser: string | undefined
}

/** A login that waits, or may go on now. */
export interface WaitingLogin {
  status: 'waiting' | 'verified'
  user: User
  captured: CapturedRequest
  login: PendingLogin
}

/** A login that cannot go on. */
export interface ClosedLogin {
  status: 'continued' | 'ended'
  /** `undefined`: it is no login of this browser. */
  captured: CapturedRequest | undefined
}

interface WaitingParts extends Environment {
  users: Pick<UserStore, 'findById'>
  pendingLogins: PendingLoginStore
  readCutoffs: ReadCutoffs
}

export function createWaitingLogins(parts: WaitingParts) {
  const { users, pendingLogins, readCutoffs, settings, clock } = parts

  async function findOwn({ pendingLoginId, browser }: WaitingPage) {
    if (browser === undefined || !isToken(browser)) return undefined
    const pending = await pendingLogins.find({ id: pendingLoginId })
    const isOwn = pending?.browserHash === hashToken(browser) && waitsUntil(pending) > clock.now()
    return isOwn ? pending : undefined
  }

  // Each turn has an id, so that no request gives back the turn of another request.
  async function inTurn({ pendingLoginId }: WaitingPage, goOn: () => Promise<void>) {
    const turn = newId()
    try {
      if (!(await pendingLogins.setTurn(pendingLoginId, turn, clock.now()))) return false
      await goOn()
      return true
    } catch (error) {
      // If that fails too, the turn stays taken, and a new login is needed.
      await pendingLogins.setTurn(pendingLoginId, turn, undefined).catch(() => {})
      throw error
    }
  }

  return {
    /** Finds a login by account, address, password and cut-offs as they are now. It does not take the turn. */
    async find(waiting: WaitingPage): Promise<WaitingLogin | ClosedLogin> {
      const pending = await findOwn(waiting)
      if (!pending) return { status: 'ended', captured: undefined }
      const { captured } = pending
      if (pending.continuedAt) return { status: isVoid(pending) ? 'ended' : 'continued', captured }
      const { accountId } = pending
      const [user, cutoffs] = await Promise.all([users.findById(accountId), readCutoffs(accountId)])
      if (!user || !isLoginOf(pending, user, cutoffs)) return { status: 'ended', captured }
      const mayGoOn = user.emailVerified || !settings().requireEmailVerification
      // Looks again: another login ends this one before it verifies, perhaps after the first look.
      if (mayGoOn && !(await findOwn(waiting).then((now) => now && !isVoid(now))))
        return { status: 'ended', captured }
      const status = mayGoOn ? 'verified' : 'waiting'
      return { status, user, captured, login: pending }
    },

    /** Whether the user cancelled the login on its page. Also `true` if the login is gone. */
    async wasCancelled(id: string): Promise<boolean> {
      const pending = await pendingLogins.find({ id })
      return !pending || (isVoid(pending) && pending.continuedAt !== undefined)
    },

    /**
     * Runs `goOn` in the one turn of the login. If that fails, the turn is given back. `false`: the turn was taken before, and nothing was
     * done.
     */
    inTurn,

    /** The same, and then ends the login. Its link still verifies the address, but does not sign the user in. */
    leave: (waiting: WaitingPage, goOn: () => Promise<void>) =>
      inTurn(waiting, async () => {
        await goOn()
        await pendingLogins.change({ id: waiting.pendingLoginId }, { isVoid: true })
      }),
  }
}

/** A login that waits (`pending_logins`) outlives its link, so that a new link still finishes it. */
export const KEEP_LOGIN_MS = WEEK_MS

/** The most waiting logins of one account; the newest stay. Otherwise a stranger who knows the password could keep the owner out. */
export const MAX_LOGINS = 10

/** Longer than any request that fits into an address. */
const MAX_CAPTURED_BYTES = 32_768

/**
 * A login that begins to wait. The same request from the same browser is the same login: its earlier link still finishes it, even if this
 * request gets no mail. `undefined`: the request is too long to be kept.
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
  // After an end of the account, the same request is another login, and the earlier login stays ended.
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

/** Whether it waits on a page where its code can be typed. */
export function isWaitingPage({ browserHash, continuedAt }: PendingLogin): boolean {
  return browserHash !== undefined && !continuedAt
}

/** Its page waits as long as the latest link that finishes it. On a shared computer that is long enough. */
function waitsUntil({ purgeAt }: PendingLogin): Date {
  return new Date(purgeAt.getTime() - KEEP_LOGIN_MS)
}

/** Whether it is still a login of this account: the account is unchanged since the password was checked, and no cut-off ended the login. */
export function isLoginOf(
  pending: PendingLogin,
  user: User,
  cutoffs: SessionCutoffs | undefined,
): boolean {
  const { accountId, ts: second, accountFlowsSeen: seen } = pending.captured.login
  return (
    pending.accountId === user.id &&
    accountId === user.id &&
    isUnchanged(pending, user) &&
    !isEnded('idp', { second, seen }, cutoffs)
  )
}
