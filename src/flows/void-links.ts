/** Voids all that was mailed to an account: its links, its waiting logins, and mails that have not left yet. */
import { linkKinds, tokensOf } from '../contract/mail-kinds.ts'
import type { User, UserStore } from '../contract/index.ts'
import type { AccountFlowsStore } from '../store/index.ts'
import { defined } from '../store/kind.ts'

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

/** Voids all links, and mails that are not sent yet, or are on their way to the mail server. */
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
 * The same users. Those of its methods that find users void the links of each disabled one, so that they stay void when the user is enabled
 * again. An optional method that is missing in `users` is missing here.
 */
export function usersVoidingLinks(users: UserStore, store: AccountFlowsStore): UserStore {
  async function voiding<Found extends User | User[] | undefined>(found: Found) {
    const disabled = [found ?? []].flat().filter((user) => user.disabled)
    await Promise.all(disabled.map(({ id }) => voidLinks(store, id)))
    return found
  }

  // Each looks its method up when it is called: a host may replace one.
  const needed = {
    findById: async (id) => voiding(await users.findById(id)),
    findByUsername: async (name) => voiding(await users.findByUsername(name)),
    findByVerifiedEmail: async (email) => voiding(await users.findByVerifiedEmail(email)),
    replacePasswordHash: (...of) => users.replacePasswordHash(...of),
    markEmailVerified: (...of) => users.markEmailVerified(...of),
  } satisfies Partial<UserStore>
  const optional = {
    start: users.start && (async () => users.start?.()),
    findByUsernameInAnyCase:
      users.findByUsernameInAnyCase &&
      (async (name) => voiding((await users.findByUsernameInAnyCase?.(name)) ?? [])),
    findByEmail:
      users.findByEmail && (async (email) => voiding((await users.findByEmail?.(email)) ?? [])),
    setFirstPassword:
      users.setFirstPassword && (async (...of) => (await users.setFirstPassword?.(...of)) ?? false),
    markEmailUnverified:
      users.markEmailUnverified &&
      (async (...of) => (await users.markEmailUnverified?.(...of)) ?? false),
    replaceEmail:
      users.replaceEmail && (async (...of) => (await users.replaceEmail?.(...of)) ?? false),
  } satisfies { [Name in Exclude<keyof UserStore, keyof typeof needed>]: UserStore[Name] }
  return { ...needed, ...defined(optional) }
}
