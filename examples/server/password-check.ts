import type { IncomingMessage } from 'node:http'
import type { AccountFlows, User, UserStore } from '../../src/index.ts'

export type PasswordCheck = (
  username: string,
  password: string,
  req?: IncomingMessage,
) => Promise<User | undefined>

/**
 * Takes a username or a verified address. Neither the answer nor its time shows whether there is such a user. The
 * look-ups are the same for everybody, and so is the work of `verifyPassword`.
 */
export function createPasswordCheck(
  users: UserStore,
  { verifyPassword }: Pick<AccountFlows, 'verifyPassword'>,
): PasswordCheck {
  return async (username, password, req) => {
    const user = await find(users, username)
    return (await verifyPassword(user, password, req)) ? user : undefined
  }
}

/** A verified address wins over another user's name, its exact bytes over another case. A username has to be exact here. */
async function find(users: UserStore, typed: string): Promise<User | undefined> {
  const username = typed.includes('@') ? typed.trim() : typed
  const [byEmail, byUsername] = await Promise.all([
    users.findByVerifiedEmail(username),
    users.findByUsername(username),
  ])
  if (byEmail.length === 0) return byUsername
  const exact = byEmail.filter(({ email }) => email === username)
  const [match, another] = exact.length > 0 ? exact : byEmail
  return another ? undefined : match
}
