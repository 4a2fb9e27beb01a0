import type { TokenHistory, User } from '../ports.ts'
import { isStillFor } from './issued-for.ts'

/** `superseded`: a newer one took its place, or something voided it; `void`: the account changed since (D6). */
export type LinkState = 'live' | 'used' | 'superseded' | 'expired' | 'void'

/** What became of a link, as the flows judge it. */
export function linkState(token: TokenHistory, user: User | undefined, at: Date): LinkState {
  if (token.usedAt ?? token.claimedAt) return 'used'
  if (token.invalidatedAt) return 'superseded'
  if (token.expiresAt <= at) return 'expired'
  return user && isStillFor(token, user) ? 'live' : 'void'
}
