import { hashToken } from '../crypto/token.ts'
import type { CapturedRequest, PendingLogin, User } from '../ports/index.ts'
import { isVoid } from '../ports/logins.ts'
import type { FlowParts } from './parts.ts'
import { windowOf, windowRule } from './whose-window.ts'
import { isLoginOf } from './waiting-login.ts'

/** What a link finishes that was mailed for a login, and where it was opened. */
export interface LinkedLogin {
  /** The request that the link finishes. `undefined`: none was captured, or its login was ended since. */
  captured: CapturedRequest | undefined
  /** True when a login waited for this link and was ended since: the link verifies, and signs nobody in. */
  loginEnded: boolean
  /** Whether the browser that opened it is the one that logged in. */
  isFirstBrowser: boolean
  /** Whether a window in another browser waits to go on. */
  isAwaited: boolean
  /** The login of another browser, whose window goes on only by the number that it shows. `undefined`: no number is asked for. */
  toMatch: LoginToMatch | undefined
}

/** What is told of a login to whoever may let its window go on. */
export interface LoginToMatch {
  id: string
  username: string
  /** Of its login page. */
  userAgent: string | undefined
  at: Date
  /** No window of it waits any more: the link verifies, and signs nobody in. */
  isOver: boolean
}

export async function linkedLogin(
  { readCutoffs, pendingLogins, settings }: FlowParts,
  pendingLoginId: string | undefined,
  user: User,
  browser: string | undefined,
): Promise<LinkedLogin> {
  if (pendingLoginId === undefined) {
    const nowhere = { isFirstBrowser: false, isAwaited: false, toMatch: undefined }
    return { captured: undefined, loginEnded: false, ...nowhere }
  }
  const cutoffs = await readCutoffs(user.id)
  const pending = await pendingLogins.find({ id: pendingLoginId })
  const isFirstBrowser = browser !== undefined && pending?.browserHash === hashToken(browser)
  const isAlive = pending && !pending.isHeld && isLoginOf(pending, user, cutoffs)
  const login = isAlive ? pending : undefined
  const hasWindow = login?.browserHash !== undefined && !login.continuedAt && !isFirstBrowser
  const isAwaited = hasWindow && windowOf(settings(), login).goesOn
  const isMatched = pending && !isFirstBrowser && windowRule(settings()) === 'match'
  const toMatch = isMatched ? { ...shown(pending, user), isOver: !isAwaited } : undefined
  return { captured: login?.captured, loginEnded: !login, isFirstBrowser, isAwaited, toMatch }
}

function shown({ id, userAgent, createdAt: at }: PendingLogin, { username }: User) {
  return { id, username, userAgent, at }
}

/**
 * Finishes the login of a link that has no turn of its own. `false`: whoever waited has left since the link was read, and nothing was
 * done.
 *
 * @param id - `undefined`: no login waited for it.
 */
export async function unlessLeft(
  pendingLogins: FlowParts['pendingLogins'],
  id: string | undefined,
  finish: () => Promise<void>,
): Promise<boolean> {
  const pending = id === undefined ? undefined : await pendingLogins.find({ id })
  if (id !== undefined && (!pending || isVoid(pending))) return false
  await finish()
  return true
}
