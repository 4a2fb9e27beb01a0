import bcrypt from 'bcrypt'
import type { User, UserStore } from '../../src/index.ts'

export type PasswordCheck = (username: string, password: string) => Promise<User | undefined>

/**
 * Takes a username or a verified address. Whether there is such a user shows neither in the answer nor in its time: unknown,
 * disabled and password-less users cost the same look-ups and the same bcrypt work as a wrong password.
 */
export function createPasswordCheck(users: UserStore, bcryptCost: number): PasswordCheck {
  // The hash of no password at all.
  const nobody = `${bcrypt.genSaltSync(bcryptCost)}${'.'.repeat(31)}`

  return async (username, password) => {
    const user = await find(users, username)
    const matches = await bcrypt.compare(password, user?.passwordHash ?? nobody)
    return matches && user?.passwordHash !== undefined && !user.disabled ? user : undefined
  }
}

/** As forgot-password does: a verified address wins over another user's name, its exact bytes over another case. */
async function find(users: UserStore, username: string): Promise<User | undefined> {
  const [byEmail, byUsername] = await Promise.all([
    users.findByVerifiedEmail(username),
    users.findByUsername(username),
  ])
  if (byEmail.length === 0) return byUsername
  const exact = byEmail.filter(({ email }) => email === username)
  const [match, another] = exact.length > 0 ? exact : byEmail
  return another ? undefined : match
}
