import type {
  ClaimedReset,
  Requester,
  RequestOrder,
  ResetStep,
  ResetTokenStore,
  Token,
} from '../../ports/index.ts'
import { isLater } from '../../ports/request-order.ts'
import { endOf } from '../../ports/token-end.ts'
import { forgetIn, type Forgetful } from '../state/forget-account.ts'
import { purge } from './purge.ts'
import { entryOf, memoryTokens, toEntry, type TokenEntry } from './tokens.ts'

interface Entry extends TokenEntry {
  claim?: { newHash: string | undefined; claimedBy: Requester; leaseUntil: Date }
}

export function memoryResetTokens(): ResetTokenStore & Forgetful {
  const entries = new Map<string, Entry>()
  const tokensOf = (id: string) =>
    [...entries.values()].map(({ token }) => token).filter(({ userId }) => userId === id)

  function invalidateLive(userId: string, request: RequestOrder, at: Date) {
    for (const token of tokensOf(userId).filter(isLive)) {
      if (!isLater(token, request)) token.invalidatedAt = at
    }
  }

  return {
    ...memoryTokens(entries),

    async issue(token) {
      purge(entries, token.createdAt)
      if (tokensOf(token.userId).some((other) => isLater(other, token))) return false
      invalidateLive(token.userId, token, token.createdAt)
      entries.set(token.id, toEntry(token))
      return true
    },

    async revoke(which, at) {
      if ('userId' in which && which.upTo) return invalidateLive(which.userId, which.upTo, at)
      for (const { token } of entries.values()) {
        const isIt = 'id' in which ? token.id === which.id : token.userId === which.userId
        if (isIt && !endOf(token, at)) token.expiresAt = at
      }
    },

    async claim(tokenHash, { newHash, by, at, leaseUntil }) {
      const entry = entryOf(entries, tokenHash)
      if (!entry || endOf(entry.token, at)) return undefined
      entry.token.claimedAt = at
      entry.claim = { newHash, claimedBy: { ...by }, leaseUntil }
      return toClaimedReset(entry)
    },

    async takeUnfinished(at, leaseUntil) {
      for (const entry of entries.values()) {
        const { token, claim } = entry
        if (!claim || !isClaimed(token) || claim.leaseUntil > at) continue
        claim.leaseUntil = leaseUntil
        return toClaimedReset(entry)
      }
      return undefined
    },

    async advance(id, step, at) {
      const { token, claim } = entries.get(id) ?? {}
      if (!token || !claim || !mayTake[step](token)) return undefined
      token[TIME_OF[step]] ??= at
      claim.newHash = undefined
      return structuredClone(token)
    },

    forget: async (userId) =>
      forgetIn(
        entries,
        ({ token }) => token.userId === userId,
        ({ token }) => isClaimed(token),
      ),
  }
}

const TIME_OF = { used: 'usedAt', rejected: 'invalidatedAt', completed: 'completedAt' } as const

const mayTake: Record<ResetStep, (token: Token) => boolean> = {
  used: ({ invalidatedAt }) => !invalidatedAt,
  rejected: ({ usedAt }) => !usedAt,
  completed: ({ usedAt }) => usedAt !== undefined,
}

/** Also of one that expired. */
function isLive({ claimedAt, invalidatedAt }: Token): boolean {
  return !claimedAt && !invalidatedAt
}

/** And not over. */
function isClaimed({ claimedAt, invalidatedAt, completedAt }: Token): boolean {
  return claimedAt !== undefined && !invalidatedAt && !completedAt
}

function toClaimedReset({ token, claim }: Entry): ClaimedReset {
  if (!token.claimedAt || !claim) throw new TypeError('A claimed reset has a time of its claim')
  const { newHash, claimedBy } = claim
  return { ...structuredClone(token), claimedAt: token.claimedAt, claimedBy, newHash }
}
