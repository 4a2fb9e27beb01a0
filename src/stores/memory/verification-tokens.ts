import type { Token, VerificationTokenStore } from '../../ports/index.ts'
import { endOf } from '../../ports/token-end.ts'
import { forgetIn, type Forgetful } from '../state/forget-account.ts'
import { purge } from './purge.ts'
import { memoryTokens, toEntry, type TokenEntry } from './tokens.ts'

export function memoryVerificationTokens(): VerificationTokenStore & Forgetful {
  const entries = new Map<string, TokenEntry>()

  function expire(isConcerned: (token: Token) => boolean, at: Date) {
    for (const { token } of entries.values()) {
      if (isConcerned(token) && !endOf(token, at)) token.expiresAt = at
    }
  }

  return {
    ...memoryTokens(entries),

    async issue(token) {
      purge(entries, token.createdAt)
      entries.set(token.id, toEntry(token))
    },

    async revoke(which, at) {
      if ('id' in which) return expire(({ id }) => id === which.id, at)
      const { userId, upTo } = which
      const isOfJob = ({ mailJobId, attempt }: Token) =>
        !upTo || (mailJobId === upTo.mailJobId && attempt <= upTo.attempt)
      expire((token) => token.userId === userId && isOfJob(token), at)
    },

    async use({ id, userId, email }, at) {
      const token = entries.get(id)?.token
      if (token) token.usedAt ??= at
      expire((other) => other.userId === userId && other.email === email, at)
    },

    async latestExpiry(at) {
      return [...entries.values()]
        .flatMap(({ token }) => (endOf(token, at) ? [] : [token.expiresAt]))
        .toSorted((one, other) => other.getTime() - one.getTime())[0]
    },

    forget: async (userId) => forgetIn(entries, ({ token }) => token.userId === userId),
  }
}
