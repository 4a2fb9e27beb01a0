import type { PendingLogin, PendingLoginStore } from '../ports.ts'
import { capturedParameters } from './captured-parameters.ts'
import { purge } from './memory-purge.ts'

/** `pending_logins` in memory. */
export function memoryPendingLogins(): PendingLoginStore {
  const logins = new Map<string, PendingLogin>()
  return {
    async save(login) {
      purge(logins, login.createdAt)
      logins.set(login.id, structuredClone(login))
    },

    async find(id) {
      return structuredClone(logins.get(id))
    },

    async findNewest(accountId, { clientId, redirectUri, state }) {
      const [newest] = [...logins.values()]
        .filter(({ captured }) => {
          const own = capturedParameters(captured)
          return own.clientId === clientId && own.redirectUri === redirectUri && own.state === state
        })
        .filter((login) => login.accountId === accountId)
        .sort((one, other) => other.createdAt.getTime() - one.createdAt.getTime())
      return structuredClone(newest)
    },

    async keepUntil(id, purgeAt) {
      const login = logins.get(id)
      if (login && login.purgeAt < purgeAt) login.purgeAt = purgeAt
    },
  }
}
