import { isStoreUnavailable } from '../errors.ts'
import type { UserStore } from '../contract/index.ts'

const AT_ONCE = 50

/** `undefined`: there is none, or it is not known. */
export type NameOf = (id: string | undefined) => string | undefined

/**
 * The usernames of accounts, for people who read ids. Whoever is gone has none; while the users cannot be reached, nobody has: what is asked
 * for is told all the same.
 */
export async function usernamesOf(
  users: UserStore,
  records: { accountId?: string | undefined }[],
): Promise<NameOf> {
  const ids = [...new Set(records.flatMap(({ accountId }) => accountId ?? []))]
  const names = new Map<string | undefined, string>()
  try {
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const found = await Promise.all(ids.slice(at, at + AT_ONCE).map((id) => users.findById(id)))
      for (const user of found) if (user) names.set(user.id, user.username)
    }
  } catch (error) {
    if (!isStoreUnavailable(error)) throw error
  }
  return (id) => names.get(id)
}
