import type { PendingLogin, PendingLoginStore } from '../../ports/index.ts'
import { capturedParameters } from '../state/captured-parameters.ts'
import { forgetIn, type Forgetful } from '../state/forget-account.ts'
import { purge } from './purge.ts'

/** `pending_logins` in memory. */
export function memoryPendingLogins(): PendingLoginStore & Forgetful {
  const logins = new Map<string, PendingLogin>()
  const turns = new WeakMap<PendingLogin, string>()

  const newestOf = (accountId: string) =>
    [...logins.values()]
      .filter((login) => login.accountId === accountId)
      .toReversed()
      .sort((one, other) => other.createdAt.getTime() - one.createdAt.getTime())

  return {
    async save(login, most) {
      purge(logins, login.createdAt)
      logins.delete(login.id)
      for (const { id } of newestOf(login.accountId).slice(most - 1)) logins.delete(id)
      logins.set(login.id, structuredClone(login))
    },

    forget: async (accountId) => forgetIn(logins, (login) => login.accountId === accountId),

    async find(id) {
      return structuredClone(logins.get(id))
    },

    async voidOf(accountId) {
      for (const login of newestOf(accountId)) login.passwordDigest = ''
    },

    async findNewest(accountId, { clientId, redirectUri, state }) {
      const found = newestOf(accountId).find(({ captured }) => {
        const own = capturedParameters(captured)
        return own.clientId === clientId && own.redirectUri === redirectUri && own.state === state
      })
      return structuredClone(found)
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
