import type { PendingLogin, PendingLoginStore } from '../ports.ts'
import { capturedParameters } from './captured-parameters.ts'
import { forgetIn, type Forgetful } from './forget-account.ts'
import { purge } from './memory-purge.ts'

/** `pending_logins` in memory. */
export function memoryPendingLogins(): PendingLoginStore & Forgetful {
  const logins = new Map<string, PendingLogin>()
  const turns = new WeakMap<PendingLogin, string>()
  return {
    async save(login) {
      purge(logins, login.createdAt)
      logins.set(login.id, structuredClone(login))
    },

    forget: async (accountId) => forgetIn(logins, (login) => login.accountId === accountId),

    async find(id) {
      return structuredClone(logins.get(id))
    },

    async findNewest(accountId, { clientId, redirectUri, state }) {
      const found = [...logins.values()].filter(({ accountId: owner, captured }) => {
        const own = capturedParameters(captured)
        return (
          owner === accountId &&
          own.clientId === clientId &&
          own.redirectUri === redirectUri &&
          own.state === state
        )
      })
      found.sort((one, other) => one.createdAt.getTime() - other.createdAt.getTime())
      return structuredClone(found.at(-1))
    },

    async markVerified(accountId, email, at) {
      for (const login of logins.values()) {
        if (login.accountId === accountId && login.email === email) login.verifiedAt ??= at
      }
    },

    async takeTurn(id, at, turn) {
      const login = logins.get(id)
      if (!login || login.continuedAt) return false
      login.continuedAt = at
      turns.set(login, turn)
      return true
    },

    async returnTurn(id, turn) {
      const login = logins.get(id)
      if (login && turns.get(login) === turn) login.continuedAt = undefined
    },

    async keepUntil(id, purgeAt) {
      const login = logins.get(id)
      if (login && login.purgeAt < purgeAt) login.purgeAt = purgeAt
    },
  }
}
