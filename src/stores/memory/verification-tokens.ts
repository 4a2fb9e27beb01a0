import type { VerificationToken, VerificationTokenStore } from '../../ports/index.ts'
import { isLater } from '../../ports/request-order.ts'
import { forgetIn, type Forgetful } from '../state/forget-account.ts'
import { purge } from './purge.ts'
import { memoryTokenHistories } from './token-histories.ts'
import { purgeTime } from '../state/purge-time.ts'

interface Entry {
  token: VerificationToken
  usedAt: Date | undefined
  purgeAt: Date
}

/** `email_verification_tokens` in memory. */
export function memoryVerificationTokens(): VerificationTokenStore & Forgetful {
  const entries = new Map<string, Entry>()
  return {
    async issue(token) {
      purge(entries, token.createdAt)
      entries.set(token.id, {
        token: structuredClone(token),
        usedAt: undefined,
        purgeAt: purgeTime(token.expiresAt),
      })
    },

    async findUsable(tokenHash, at) {
      const entry = [...entries.values()].find(
        ({ token, usedAt }) => token.tokenHash === tokenHash && !usedAt && token.expiresAt > at,
      )
      return entry && structuredClone(entry.token)
    },

    async findDead(tokenHash, at) {
      const entry = [...entries.values()].find(({ token }) => token.tokenHash === tokenHash)
      if (!entry || (!entry.usedAt && entry.token.expiresAt > at)) return undefined
      const { userId, email, passwordDigest, carried, pendingLoginId } = entry.token
      const reason = entry.usedAt ? 'used' : 'expired'
      return structuredClone({ userId, email, passwordDigest, carried, pendingLoginId, reason })
    },

    async hasUsable({ userId, email, passwordDigest }, at, ofLogin = false) {
      return [...entries.values()].some(
        ({ token, usedAt }) =>
          !usedAt &&
          (!ofLogin || token.pendingLoginId !== undefined) &&
          token.expiresAt > at &&
          token.userId === userId &&
          token.email === email &&
          token.passwordDigest === passwordDigest,
      )
    },

    async latestExpiry(at) {
      const usable = [...entries.values()].filter(
        ({ token, usedAt }) => !usedAt && token.expiresAt > at,
      )
      const [latest] = usable
        .map(({ token }) => token.expiresAt)
        .sort((a, b) => b.getTime() - a.getTime())
      return latest
    },

    async revoke(which, at) {
      for (const entry of entries.values()) {
        const { id, userId } = entry.token
        if ('id' in which ? id === which.id : userId === which.userId) expire(entry, at)
      }
    },

    async revokeOf(userId, { mailJobId, attempt }, at) {
      for (const entry of entries.values()) {
        const { token } = entry
        const isOfJob = token.userId === userId && token.mailJobId === mailJobId
        if (isOfJob && token.attempt <= attempt) expire(entry, at)
      }
    },

    async hasLater(userId, request) {
      return [...entries.values()].some(
        ({ token }) => token.userId === userId && isLater(token, request),
      )
    },

    async markUsed({ id, userId, email }, at) {
      for (const entry of entries.values()) {
        const { token } = entry
        if (token.id === id) entry.usedAt ??= at
        else if (token.userId === userId && token.email === email) expire(entry, at)
      }
    },

    forget: async (userId) => forgetIn(entries, ({ token }) => token.userId === userId),

    ...memoryTokenHistories(entries),
  }
}

function expire(entry: Entry, at: Date) {
  if (!entry.usedAt && entry.token.expiresAt > at) entry.token.expiresAt = at
}
