import type { User } from '../ports/index.ts'
import { MAIL_KINDS, type LinkKind } from '../ports/mail-kinds.ts'
import type { AccountFlowsStore, Token, TokenStore } from '../records/index.ts'
import { isVoided } from '../flows/account.ts'
import { linkState } from '../flows/link.ts'
import type { Link } from './description.ts'

/** `superseded`: a newer one took its place; `void`: the account changed since, or all of its links were voided. */
export type LinkState = Link['state']

/** What became of a link, as the flows judge it. */
export function shownState(token: Token, user: User | undefined, at: Date): LinkState {
  const state = linkState(token, user, at)
  if (state === 'usable') return 'live'
  if (state === 'changed') return 'void'
  return state === 'expired' && isVoided(token) ? 'void' : state
}

export function tokensOf(store: AccountFlowsStore, kind: LinkKind): TokenStore {
  return store[MAIL_KINDS[kind].link.tokens]
}

/** What is told of the token of a link, whoever asks. */
export function tokenShape(token: Token) {
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
