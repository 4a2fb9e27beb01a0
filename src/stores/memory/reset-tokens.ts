import type {
  ClaimedReset,
  DeadToken,
  Requester,
  RequestOrder,
  ResetToken,
  ResetTokenStore,
} from '../../ports/index.ts'
import { isLater } from '../../ports/request-order.ts'
import { forgetIn, type Forgetful } from '../state/forget-account.ts'
import { purge } from './purge.ts'
import { memoryTokenHistories } from './token-histories.ts'
import { purgeTime } from '../state/purge-time.ts'

interface Entry {
  token: ResetToken
  newHash: string | undefined
  usedAt: Date | undefined
  state: 'live' | 'invalidated' | 'claimed' | 'completed'
  claimedAt: Date | undefined
  claimedBy: Requester
  invalidatedAt: Date | undefined
  completedAt: Date | undefined
  leaseUntil: Date | undefined
  purgeAt: Date
}

/** `password_reset_tokens` in memory. */
export function memoryResetTokens(): ResetTokenStore & Forgetful {
  const entries = new Map<string, Entry>()

  function invalidateLive(userId: string, request: RequestOrder, at: Date) {
    for (const entry of entries.values()) {
      const { token, state } = entry
      if (token.userId !== userId || state !== 'live') continue
      if (!isLater(token, request)) invalidate(entry, at)
    }
  }

  function isSuperseded(issued: ResetToken) {
    return [...entries.values()].some(
      ({ token }) => token.userId === issued.userId && isLater(token, issued),
    )
  }

  function usable(tokenHash: string, at: Date) {
    return [...entries.values()].find(
      ({ token, state }) =>
        token.tokenHash === tokenHash && state === 'live' && token.expiresAt > at,
    )
  }

  function claimed(id: string) {
    const entry = entries.get(id)
    return entry?.state === 'claimed' ? entry : undefined
  }

  return {
    async issue(token) {
      purge(entries, token.createdAt)
      if (isSuperseded(token)) return false
      invalidateLive(token.userId, token, token.createdAt)
      entries.set(token.id, {
        token: structuredClone(token),
        newHash: undefined,
        usedAt: undefined,
        state: 'live',
        claimedAt: undefined,
        claimedBy: { address: undefined, userAgent: undefined },
        invalidatedAt: undefined,
        completedAt: undefined,
        leaseUntil: undefined,
        purgeAt: purgeTime(token.expiresAt),
      })
      return true
    },

    async invalidateLive(userId, request, at) {
      invalidateLive(userId, request, at)
    },

    async findUsable(tokenHash, at) {
      const entry = usable(tokenHash, at)
      return entry && structuredClone(entry.token)
    },

    async findDead(tokenHash, at) {
      const entry = [...entries.values()].find(({ token }) => token.tokenHash === tokenHash)
      const reason = entry && whyDead(entry, at)
      if (!reason) return undefined
      const { userId, email, passwordDigest, carried } = entry.token
      return structuredClone({ userId, email, passwordDigest, carried, reason })
    },

    async hasUsable({ userId, email, passwordDigest }, at) {
      return [...entries.values()].some(
        ({ token, state }) =>
          state === 'live' &&
          token.expiresAt > at &&
          token.userId === userId &&
          token.email === email &&
          token.passwordDigest === passwordDigest,
      )
    },

    async revoke(which, at) {
      for (const { token, state } of entries.values()) {
        const isIt = 'id' in which ? token.id === which.id : token.userId === which.userId
        if (isIt && state === 'live' && token.expiresAt > at) token.expiresAt = at
      }
    },

    async claim(tokenHash, { newHash, by, at, leaseUntil }) {
      const entry = usable(tokenHash, at)
      if (!entry) return undefined
      entry.state = 'claimed'
      entry.newHash = newHash
      entry.claimedAt = at
      entry.claimedBy = { ...by }
      entry.leaseUntil = leaseUntil
      return toClaimedReset(entry)
    },

    async takeUnfinished(at, leaseUntil) {
      const entry = [...entries.values()].find(
        (each) => each.state === 'claimed' && each.leaseUntil && each.leaseUntil <= at,
      )
      if (!entry) return undefined
      entry.leaseUntil = leaseUntil
      return toClaimedReset(entry)
    },

    async markUsed(id, at) {
      const entry = entries.get(id)
      if (entry?.usedAt) return entry.usedAt
      if (entry?.state !== 'claimed') throw new Error(`No claimed reset has the id ${id}`)
      entry.usedAt = at
      entry.newHash = undefined
      return at
    },

    async reject(id, at) {
      const entry = claimed(id)
      if (!entry || entry.usedAt) return
      invalidate(entry, at)
      entry.newHash = undefined
    },

    async complete(id, at) {
      const entry = claimed(id)
      if (!entry?.usedAt) return
      entry.state = 'completed'
      entry.completedAt = at
    },

    forget: async (userId) =>
      forgetIn(
        entries,
        ({ token }) => token.userId === userId,
        ({ state }) => state === 'claimed',
      ),

    ...memoryTokenHistories(entries),
  }
}

function invalidate(entry: Entry, at: Date) {
  entry.state = 'invalidated'
  entry.invalidatedAt = at
}

function whyDead({ state, token }: Entry, at: Date): DeadToken['reason'] | undefined {
  if (state === 'claimed' || state === 'completed') return 'used'
  if (state === 'invalidated') return 'invalidated'
  return token.expiresAt > at ? undefined : 'expired'
}

function toClaimedReset({ token, newHash, usedAt, claimedAt, claimedBy }: Entry): ClaimedReset {
  if (!claimedAt) throw new TypeError('A claimed reset has a time of its claim')
  return { ...structuredClone(token), claimedAt, claimedBy, newHash, usedAt }
}
