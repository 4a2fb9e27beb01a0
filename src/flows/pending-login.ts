import { passwordDigest } from '../crypto/password.ts'
import { hashToken, idOf, newId } from '../crypto/token.ts'
import type { CapturedRequest, PendingLogin, SessionCutoffs, User } from '../ports/index.ts'
import { isEnded } from '../ports/login-second.ts'
import { isStillFor } from './issued-for.ts'

/** A login that waits (`pending_logins`) outlives its link, so that a fresh link, asked for late, still finishes it. */
export const KEEP_LOGIN_MS = 7 * 86_400_000

/** Of one account. The newest: whoever knows its password could otherwise keep its owner out for as long as logins are kept. */
export const MOST_LOGINS = 10

/** More than any request that comes in an address. */
const MAX_CAPTURED_BYTES = 32_768

/**
 * A login that begins to wait. The same request, sent again by the same browser, is the same login: its earlier link finishes it,
 * also where it gets no link of its own. `undefined`: the request is too long to be kept.
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
  const { params, deviceCode } = captured
  return {
    ...checked,
    id: browser === undefined ? newId() : idOf([browser, checked, params, deviceCode]),
    captured,
    browserHash: browser === undefined ? undefined : hashToken(browser),
    createdAt,
    verifiedAt: undefined,
    continuedAt: undefined,
    purgeAt: new Date(createdAt.getTime() + lifetimeMs + KEEP_LOGIN_MS),
  }
}

/** Until when its window waits: as long as the latest link works that finishes it. On a shared computer that is long enough. */
export function waitsUntil({ purgeAt }: PendingLogin): Date {
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
