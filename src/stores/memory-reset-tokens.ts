import type { ClaimedReset, ResetToken, ResetTokenStore } from '../ports.ts'
import { purge } from './memory-purge.ts'
import { purgeTime } from './purge-time.ts'

interface Entry {
  token: ResetToken
  newHash: string | undefined
  usedAt: Date | undefined
  state: 'live' | 'invalidated' | 'claimed' | 'completed'
  claimedAt: Date | undefined
  leaseUntil: Date | undefined
  purgeAt: Date
}

/** `password_reset_tokens` in memory. */
export function memoryResetTokens(): ResetTokenStore {
  const entries = new Map<string, Entry>()

  function invalidate(userId: string, requestedAt: Date) {
    for (const entry of entries.values())
      if (
        entry.token.userId === userId &&
        entry.state === 'live' &&
        entry.token.requestedAt <= requestedAt
      )
        entry.state = 'invalidated'
  }

  function isSuperseded({ userId, requestedAt }: ResetToken) {
    return [...entries.values()].some(
      ({ token }) => token.userId === userId && token.requestedAt > requestedAt,
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
      invalidate(token.userId, token.requestedAt)
      entries.set(token.id, {
        token: structuredClone(token),
        newHash: undefined,
        usedAt: undefined,
        state: 'live',
        claimedAt: undefined,
        leaseUntil: undefined,
        purgeAt: purgeTime(token.expiresAt),
      })
      return true
    },

    async invalidateLive(userId, requestedAt) {
      invalidate(userId, requestedAt)
    },

    async findUsable(tokenHash, at) {
      const entry = usable(tokenHash, at)
      return entry && structuredClone(entry.token)
    },

    async claim(tokenHash, newHash, at, leaseUntil) {
      const entry = usable(tokenHash, at)
      if (!entry) return undefined
      entry.state = 'claimed'
      entry.newHash = newHash
      entry.claimedAt = at
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

    async reject(id) {
      const entry = claimed(id)
      if (!entry || entry.usedAt) return
      entry.state = 'invalidated'
      entry.newHash = undefined
    },

    async complete(id) {
      const entry = claimed(id)
      if (entry?.usedAt) entry.state = 'completed'
    },
  }
}

function toClaimedReset({ token, newHash, usedAt, claimedAt }: Entry): ClaimedReset {
  if (!claimedAt) throw new TypeError('A claimed reset has a time of its claim')
  return { ...structuredClone(token), claimedAt, newHash, usedAt }
}
