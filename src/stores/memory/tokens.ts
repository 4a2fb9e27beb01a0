import type { NewToken, Token, TokenStore } from '../../ports/index.ts'
import { eightDaysAfter } from '../../ports/week.ts'

/** A record of a token of either kind in memory. */
export interface TokenEntry {
  token: Token
  tokenHash: string
  purgeAt: Date
}

export function toEntry({ tokenHash, ...token }: NewToken): TokenEntry {
  return {
    token: structuredClone({
      locale: undefined,
      pendingLoginId: undefined,
      ...token,
      usedAt: undefined,
      claimedAt: undefined,
      invalidatedAt: undefined,
      completedAt: undefined,
    }),
    tokenHash,
    purgeAt: eightDaysAfter(token.expiresAt),
  }
}

export function entryOf<E extends TokenEntry>(
  entries: Map<string, E>,
  hash: string,
): E | undefined {
  return [...entries.values()].find(({ tokenHash }) => tokenHash === hash)
}

/** How tokens of either kind are found in memory. */
export function memoryTokens(entries: Map<string, TokenEntry>): TokenStore {
  return {
    find: async (tokenHash) => structuredClone(entryOf(entries, tokenHash)?.token),

    async ofUser(userId, limit) {
      const newestFirst = [...entries.values()]
        .map(({ token }) => token)
        .filter((token) => token.userId === userId)
        .toReversed()
        .toSorted((one, other) => other.createdAt.getTime() - one.createdAt.getTime())
      return structuredClone(newestFirst.slice(0, limit))
    },
  }
}
