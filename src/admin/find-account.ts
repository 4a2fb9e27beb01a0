import type { User, UserStore } from '../ports/index.ts'

/** Names an account exactly by its id, or by whatever an admin has at hand. */
export type AccountQuery = { id: string } | { user: string }

/** Several accounts are meant by one text: nobody but the admin can tell which. */
export interface Candidates {
  candidates: User[]
}

/**
 * Finds the account that an admin means: by its id, or by a text that is the username, the verified address or the id of one
 * account alone. Unlike what a person types at a form, no meaning wins over another.
 */
export async function findAccount(
  users: UserStore,
  query: AccountQuery,
): Promise<User | Candidates | 'unknown'> {
  if ('id' in query) return (await users.findById(query.id)) ?? 'unknown'
  const [byName, byId, byEmail] = await Promise.all([
    users.findByUsername(query.user),
    users.findById(query.user),
    users.findByVerifiedEmail(query.user),
  ])
  const found = [byName, byId, ...byEmail].filter((user) => user !== undefined)
  const candidates = [...new Map(found.map((user) => [user.id, user])).values()]
  const [only = 'unknown', another] = candidates
  return another ? { candidates } : only
}
