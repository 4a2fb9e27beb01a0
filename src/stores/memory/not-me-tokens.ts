import type { NotMeToken, NotMeTokenStore } from '../../ports/index.ts'
import { forgetIn, type Forgetful } from '../state/forget-account.ts'
import { purge } from './purge.ts'

interface Entry {
  token: NotMeToken
  blockedHash?: string
  purgeAt: Date
}

export function memoryNotMeTokens(): NotMeTokenStore & Forgetful {
  const entries = new Map<string, Entry>()
  return {
    async issue(token) {
      purge(entries, token.createdAt)
      const copy = structuredClone({ ...token, usedAt: undefined })
      entries.set(token.tokenHash, { token: copy, purgeAt: copy.expiresAt })
    },

    find: async (tokenHash) => structuredClone(entries.get(tokenHash)?.token),

    async block(tokenHash, hash) {
      const entry = entries.get(tokenHash)
      return entry ? (entry.blockedHash ??= hash) : hash
    },

    async use(tokenHash, at) {
      const token = entries.get(tokenHash)?.token
      if (token) token.usedAt ??= at
    },

    forget: async (userId) => forgetIn(entries, ({ token }) => token.userId === userId),
  }
}
