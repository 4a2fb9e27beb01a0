import type { CarriedParameters, PendingLogin, PendingLoginStore } from '../../ports/index.ts'
import { isVoid } from '../../ports/logins.ts'
import { carriedBy } from '../../ports/carried-query.ts'
import { forgetIn, type Forgetful } from '../state/forget-account.ts'
import { purge } from './purge.ts'

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
      const known = logins.get(login.id)
      if (known && isVoid(known) && !known.continuedAt) return
      logins.delete(login.id)
      for (const { id } of newestOf(login.accountId).slice(most - 1)) logins.delete(id)
      logins.set(login.id, structuredClone(login))
    },

    forget: async (accountId) => forgetIn(logins, (login) => login.accountId === accountId),

    async find(which) {
      if ('id' in which) return structuredClone(logins.get(which.id))
      return structuredClone(
        newestOf(which.accountId).find((login) =>
          'carried' in which
            ? isOfRequest(login, which.carried)
            : login.browserHash === which.browserHash && !login.continuedAt && !isVoid(login),
        ),
      )
    },

    async change(which, changes) {
      for (const login of logins.values()) {
        const isIt =
          'id' in which
            ? login.id === which.id
            : login.accountId === which.accountId && login.id !== which.except
        if (!isIt) continue
        const { purgeAt } = changes
        if (purgeAt && login.purgeAt < purgeAt) login.purgeAt = purgeAt
        if (changes.isVoid) login.passwordDigest = ''
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

function isOfRequest({ captured }: PendingLogin, carried: CarriedParameters): boolean {
  const own = carriedBy(captured)
  return (['clientId', 'redirectUri', 'state'] as const).every(
    (name) => own[name] === carried[name],
  )
}
