import { hashToken } from '../crypto/token.ts'
import type { CapturedRequest, User } from '../ports/index.ts'
import { isVoid } from '../ports/logins.ts'
import type { FlowParts } from './parts.ts'
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
}

export async function linkedLogin(
  { readCutoffs, pendingLogins }: FlowParts,
  pendingLoginId: string | undefined,
  user: User,
  browser: string | undefined,
): Promise<LinkedLogin> {
  if (pendingLoginId === undefined) {
    return { captured: undefined, loginEnded: false, isFirstBrowser: false, isAwaited: false }
  }
  const cutoffs = await readCutoffs(user.id)
  const pending = await pendingLogins.find({ id: pendingLoginId })
  const isFirstBrowser = browser !== undefined && pending?.browserHash === hashToken(browser)
  const login = pending && isLoginOf(pending, user, cutoffs) ? pending : undefined
  const hasWindow = login?.browserHash !== undefined && !login.continuedAt
  const isAwaited = hasWindow && !isFirstBrowser
  return { captured: login?.captured, loginEnded: !login, isFirstBrowser, isAwaited }
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
