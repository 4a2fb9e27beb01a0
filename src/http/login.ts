import type { IncomingMessage, ServerResponse } from 'node:http'
import { passwordDigest } from '../crypto/password.ts'
import { KEEP_LOGIN_MS } from '../flows/waiting-login.ts'
import { loginSecond } from '../ports/login-second.ts'
import type { LoginResult, User } from '../ports/index.ts'
import { blockedPage } from './verify-email-pages.ts'
import type { HttpParts } from './parts.ts'

/** A clock that is set back during a request is no reason to refuse a login. */
const CLOCK_STEP_SECONDS = 60

/** A login whose credentials the host has checked. */
export interface CheckedLogin {
  /**
   * The user's record, with the hash that the password was compared with; a host that hashes anew does so afterwards. Or the id alone:
   * then the clocks of the processes tell whether a reset came later, and should agree to the second.
   */
  account: User | string
  /** From `loginStarted()`, called before the password hash was read. */
  startedAt: number
  acr?: string
  amr?: string[]
  /** `false`: the session ends with the browser. */
  remember?: boolean
}

export interface Login {
  /** The second in which a login POST arrived. */
  loginStarted(): number
  /**
   * Answers with the verification page in mode `blocked`, and sends a link, when the user may not finish the login (4.8). An
   * authorization request of more than 32 KiB cannot be kept for that: it is refused by a page, with status 400.
   *
   * @returns `false`: nothing was answered; the login may be finished. Of a host that does that without `finishLogin`, the result
   * needs `ts: startedAt`, and between processes whose clocks differ a reset may not end it.
   */
  blockUnverified(req: IncomingMessage, res: ServerResponse, login: CheckedLogin): Promise<boolean>
  /** Answers the host's login POST: blocked as above, or finished by the provider. */
  finishLogin(req: IncomingMessage, res: ServerResponse, login: CheckedLogin): Promise<void>
}

export function createLogin(parts: HttpParts): Login {
  const { users, verification, interactions, browserCookie, pages, settings } = parts
  const { now } = parts.clock

  async function isBlocked(
    req: IncomingMessage,
    res: ServerResponse,
    account: User | string,
    result: LoginResult,
  ): Promise<boolean> {
    if (!settings().requireEmailVerification) return false
    const user = typeof account === 'string' ? await users.findById(account) : account
    if (!user || !verification.blocks(user)) return false

    const captured = { ...(await interactions.capture(req, res)), login: result }
    const lifetimeMs = settings().emailVerificationExpiration
    const isRemembered = result.remember !== false
    const waitsForMs = isRemembered ? lifetimeMs + KEEP_LOGIN_MS : undefined
    const browser = browserCookie.keep(req, res, waitsForMs)
    const by = { ...parts.requesterOf(req), browser }
    const pendingLoginId = await verification.block(user, captured, by)
    if (pendingLoginId === undefined) {
      pages.send(req, res, { status: 400, name: 'error', locals: { mode: 'request_too_long' } })
      return true
    }
    const waitMs = await parts.cooldown.count({
      kind: 'email_verification',
      typed: user.username,
      requester: by,
    })
    const blocked = { user, captured, pendingLoginId, lifetimeMs, waitMs }
    pages.send(req, res, await blockedPage(parts, blocked))
    return true
  }

  async function noted(login: CheckedLogin): Promise<LoginResult> {
    const result = resultOf(login, now())
    const { account } = login
    const hash = typeof account === 'string' ? undefined : account.passwordHash
    const digest = hash === undefined ? undefined : passwordDigest(hash)
    return { ...result, ts: await parts.noteLogin(result.accountId, result.ts, digest) }
  }

  return {
    loginStarted: () => loginSecond(now()),
    blockUnverified: async (req, res, login) =>
      isBlocked(req, res, login.account, await noted(login)),

    async finishLogin(req, res, login) {
      const result = await noted(login)
      if (await isBlocked(req, res, login.account, result)) return
      await interactions.finish(req, res, result)
    },
  }
}

// A time in milliseconds, or in the future, would outlive every cut-off to come.
function resultOf({ account, startedAt, acr, amr, remember }: CheckedLogin, at: Date): LoginResult {
  const now = loginSecond(at)
  if (!Number.isInteger(startedAt) || startedAt > now + CLOCK_STEP_SECONDS) {
    throw new TypeError('startedAt must come from loginStarted()')
  }
  return {
    accountId: typeof account === 'string' ? account : account.id,
    ts: Math.min(startedAt, now),
    ...(acr !== undefined && { acr }),
    ...(amr !== undefined && { amr }),
    ...(remember !== undefined && { remember }),
  }
}
