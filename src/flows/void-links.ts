/** Voids all that was mailed to an account: its links, its waiting logins, and mails that have not left yet. */
import { linkKinds, tokensOf } from '../contract/mail-kinds.ts'
import type { User, UserStore } from '../contract/index.ts'
import type { AccountFlowsStore } from '../store/index.ts'

/** So long ago that a void link has expired by every clock. */
const VOIDED_AT = new Date(0)

/**
 * Voids the mailed links of an account, and ends its waiting logins: all, or all that are not for one address. A form that was accepted
 * before still sets its password.
 */
export async function voidLinks(
  store: AccountFlowsStore,
  userId: string,
  exceptAddress?: string,
  kinds = linkKinds,
) {
  await store.pendingLogins.change({ accountId: userId, exceptAddress }, { isVoid: true })
  for (const kind of kinds) await tokensOf(store, kind).revoke({ userId, exceptAddress }, VOIDED_AT)
}

/** Voids all links, and mails with a link that are not sent yet, or are on their way to the mail server. Waiting logins end too. */
export async function voidEverything(store: AccountFlowsStore, userId: string, kinds = linkKinds) {
  await supersedeMails(store, userId, kinds)
  await voidLinks(store, userId, undefined, kinds)
}

async function supersedeMails(store: AccountFlowsStore, userId: string, kinds = linkKinds) {
  for (const kind of kinds) {
    const requests = await store.outbox.requestsOf(userId, kind)
    const ids = requests.map(({ id }) => id)
    await store.outbox.supersede(ids, VOIDED_AT)
  }
}

/** Ends links, and mails that have not left, but no waiting logins: one of them waits for another address from now on. */
export async function endMailed(store: AccountFlowsStore, userId: string, at: Date) {
  await supersedeMails(store, userId)
  for (const kind of linkKinds) await tokensOf(store, kind).revoke({ userId }, at)
}

export function wasVoided({ expiresAt }: { expiresAt: Date }): boolean {
  return expiresAt.getTime() === VOIDED_AT.getTime()
}

/**
 * Voids the links of each disabled user that a method finds, so that they stay void when the user is enabled again. All methods are those of
 * `users`: one that is missing there is missing here.
 */
export function usersVoidingLinks(users: UserStore, store: AccountFlowsStore): UserStore {
  async function voidIfDisabled(found: unknown) {
    const { id, disabled }: Partial<User> = Object(found)
    if (id !== undefined && disabled) await voidLinks(store, id)
  }

  // A proxy, because a host may add or replace methods later. Not of `users` itself: of a frozen object, it must return them unchanged.
  return new Proxy<UserStore>(Object.create(users), {
    get(_, name) {
      const method: unknown = Reflect.get(users, name)
      if (typeof method !== 'function') return method
      return async (...of: unknown[]) => {
        const answer: unknown = await Reflect.apply(method, users, of)
        await Promise.all([answer].flat().map(voidIfDisabled))
        return answer
      }
    },
  })
}
