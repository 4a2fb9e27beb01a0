import type { User, UserStore } from '../../ports/index.ts'
import { equalsInAsciiCase } from '../../ports/users.ts'

/** Users in memory: for a first try and for tests. */
export function memoryUsers(initial: User[] = []): UserStore & { add(user: User): void } {
  const users = new Map<string, User>()

  function add(user: User) {
    users.set(user.id, { ...user })
  }
  for (const user of initial) add(user)

  const withEmail = (email: string) =>
    [...users.values()].filter((user) => user.email && equalsInAsciiCase(user.email, email))

  return {
    /** Adds a user, or replaces the one with this id. */
    add,

    async findById(id) {
      return structuredClone(users.get(id))
    },

    async findByUsername(username) {
      return structuredClone([...users.values()].find((user) => user.username === username))
    },

    async findByUsernameInAnyCase(username) {
      const found = [...users.values()].filter((user) => equalsInAsciiCase(user.username, username))
      return structuredClone(found)
    },

    async findByVerifiedEmail(email) {
      return structuredClone(withEmail(email).filter(({ emailVerified }) => emailVerified))
    },

    async findByEmail(email) {
      return structuredClone(withEmail(email))
    },

    async replacePasswordHash(id, expected, next) {
      const user = users.get(id)
      if (!user || user.passwordHash !== expected) return false
      user.passwordHash = next
      return true
    },

    async setFirstPassword(id, email, hash) {
      const user = users.get(id)
      if (!user || user.disabled || user.passwordHash !== undefined || user.email !== email)
        return false
      Object.assign(user, { passwordHash: hash, emailVerified: true })
      return true
    },

    async markEmailVerified(id, email) {
      const user = users.get(id)
      if (!user || user.disabled || user.emailVerified || user.email !== email) return false
      user.emailVerified = true
      return true
    },

    async markEmailUnverified(id, email) {
      const user = users.get(id)
      if (!user?.emailVerified || user.email !== email) return false
      user.emailVerified = false
      return true
    },
  }
}
