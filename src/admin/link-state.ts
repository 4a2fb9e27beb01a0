import type { AccountFlowsStore, TokenHistories, TokenHistory, User } from '../ports/index.ts'
import type { Link } from './description.ts'
import type { Sent } from './parts.ts'
import { isStillFor, isVoided } from '../flows/account.ts'

export type LinkKind = 'password_reset' | 'email_verification'

/** `superseded`: a newer one took its place; `void`: the account changed since, or all of its links were voided. */
export type LinkState = 'live' | 'used' | 'superseded' | 'expired' | 'void'

/** A link of an account, and what became of it. */
interface StatedLink {
  kind: LinkKind
  state: LinkState
  token: TokenHistory
}

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

export function tokensOf(store: AccountFlowsStore, kind: LinkKind): TokenHistories {
  return kind === 'password_reset' ? store.resetTokens : store.verificationTokens
}

export function linkShape({ kind, state, token }: StatedLink): Sent<Link> {
  return { kind, state, ...tokenShape(token) }
}

/** What is told of the token of a link, whoever asks. */
export function tokenShape(token: TokenHistory) {
  const { usedAt, claimedAt, invalidatedAt } = token
  return {
    created_at: token.createdAt,
    expires_at: token.expiresAt,
    used_at: usedAt ?? (invalidatedAt ? undefined : claimedAt),
    invalidated_at: invalidatedAt,
    completed_at: token.completedAt,
    client_id: token.carried.clientId,
    mail_id: token.mailJobId,
  }
}
