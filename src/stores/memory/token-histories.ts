import type { ResetToken, TokenHistories, TokenHistory } from '../../ports/index.ts'

interface Entry {
  token: Omit<TokenHistory, 'usedAt' | 'claimedAt' | 'invalidatedAt' | 'completedAt'> &
    Pick<ResetToken, 'tokenHash'>
  usedAt: Date | undefined
  claimedAt?: Date | undefined
  invalidatedAt?: Date | undefined
  completedAt?: Date | undefined
}

/** What became of the tokens of either kind, in memory. */
export function memoryTokenHistories(entries: Map<string, Entry>): TokenHistories {
  return {
    async findHistory(tokenHash) {
      const entry = [...entries.values()].find(({ token }) => token.tokenHash === tokenHash)
      return entry && toHistory(entry)
    },

    async historiesOf(userId, limit) {
      return [...entries.values()]
        .filter(({ token }) => token.userId === userId)
        .toReversed()
        .toSorted((one, other) => other.token.createdAt.getTime() - one.token.createdAt.getTime())
        .slice(0, limit)
        .map(toHistory)
    },
  }
}

function toHistory({ token, usedAt, claimedAt, invalidatedAt, completedAt }: Entry): TokenHistory {
  const { id, userId, email, passwordDigest, carried, mailJobId, createdAt, expiresAt } = token
  return structuredClone({
    id,
    userId,
    email,
    passwordDigest,
    carried,
    mailJobId,
    createdAt,
    expiresAt,
    usedAt,
    claimedAt,
    invalidatedAt,
    completedAt,
  })
}
