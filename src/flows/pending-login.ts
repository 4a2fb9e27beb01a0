import type { PendingLogin, User } from '../ports.ts'
import { isEndedBy } from '../login-second.ts'
import { isStillFor } from './issued-for.ts'

/** A login that waits outlives its link, so that a fresh link, asked for late, still finishes it. */
export const KEEP_LOGIN_MS = 7 * 86_400_000

/** Until when its window waits: as long as the latest link works that finishes it. On a shared computer that is long enough. */
export function waitsUntil({ purgeAt }: PendingLogin): Date {
  return new Date(purgeAt.getTime() - KEEP_LOGIN_MS)
}

/** Whether it is a login of this account still: it is as old as the password that it was checked with, whatever finishes it. */
export function isLoginOf(pending: PendingLogin, user: User, endedAt: Date | undefined): boolean {
  const { accountId, ts } = pending.captured.login
  return (
    pending.accountId === user.id &&
    accountId === user.id &&
    isStillFor(pending, user) &&
    !isEndedBy(endedAt, ts)
  )
}
