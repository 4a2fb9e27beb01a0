import type { ClientLogout, NewClientLogout } from '../../ports/index.ts'
import { weekAfter } from '../../ports/week.ts'

/** So many are told of one account at most. */
export const MOST_FOUND = 100

/** As it begins. */
export function newLogout(logout: NewClientLogout): ClientLogout & { purgeAt: Date } {
  const { canBeTold, requestedAt, expiresAt } = logout
  return {
    ...logout,
    state: canBeTold ? 'waiting' : 'untold',
    attempts: 0,
    reason: undefined,
    isForgotten: false,
    // Also of one that nobody takes up.
    purgeAt: weekAfter(canBeTold ? expiresAt : requestedAt),
  }
}
