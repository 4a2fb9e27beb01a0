import type { PendingLogin, PendingLoginStore } from '../../ports/index.ts'
import { carriedBy } from '../../ports/carried-query.ts'
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

    async find(which) {
      if ('id' in which) return structuredClone(logins.get(which.id))
      const { clientId, redirectUri, state } = which.carried
      const found = newestOf(which.accountId).find(({ captured }) => {
        const own = carriedBy(captured)
        return own.clientId === clientId && own.redirectUri === redirectUri && own.state === state
      })
      return structuredClone(found)
    },

    async change(which, { purgeAt, verifiedAt, isVoid }) {
      for (const login of logins.values()) {
        const { id, accountId, email } = login
        const isIt = 'id' in which ? id === which.id : accountId === which.accountId
        if (!isIt || ('email' in which && email !== which.email)) continue
        if ('except' in which && id === which.except) continue
        if (purgeAt && login.purgeAt < purgeAt) login.purgeAt = purgeAt
        if (verifiedAt && !(login.verifiedAt && login.verifiedAt < verifiedAt))
          login.verifiedAt = verifiedAt
        if (isVoid) login.passwordDigest = ''
      }
    },

    async setTurn(id, turn, at) {
      const login = logins.get(id)
      if (!login || (at ? login.continuedAt : turns.get(login) !== turn)) return false
      login.continuedAt = at
      if (at) turns.set(login, turn)
      else turns.delete(login)
      return true
    },
  }
}
