import type { TokenHistory, User } from '../ports/index.ts'
import { isStillFor, isVoided } from '../flows/account.ts'

/** `superseded`: a newer one took its place; `void`: the account changed since, or all of its links were voided. */
export type LinkState = 'live' | 'used' | 'superseded' | 'expired' | 'void'

/** What became of a link, as the flows judge it. */
export function linkState(token: TokenHistory, user: User | undefined, at: Date): LinkState {
  if (token.usedAt) return 'used'
  // A reset that was decided, and refused in the end: the account had changed.
  if (token.claimedAt) return token.invalidatedAt ? 'void' : 'used'
  if (token.invalidatedAt) return 'superseded'
  if (isVoided(token)) return 'void'
  if (token.expiresAt <= at) return 'expired'
  return user && isStillFor(token, user) ? 'live' : 'void'
}
