import type { User, UserStore } from '../../ports/index.ts'
import { equalsInAsciiCase } from '../../ports/users.ts'

/** Users in memory: for a first try and for tests. */
export function memoryUsers(initial: User[] = []): UserStore & { add(user: User): void } {
  const users = new Map(initial.map((user) => [user.id, { ...user }]))
  const withEmail = (email: string) =>
    [...users.values()].filter((user) => user.email && equalsInAsciiCase(user.email, email))

  return {
    /** Adds a user, or replaces the one with this id. */
    add: (user) => void users.set(user.id, { ...user }),

    findById: async (id) => structuredClone(users.get(id)),

    findByUsername: async (username) =>
      structuredClone([...users.values()].find((user) => user.username === username)),

    findByUsernameInAnyCase: async (name) =>
      structuredClone([...users.values()].filter((user) => equalsInAsciiCase(user.username, name))),

    findByVerifiedEmail: async (email) =>
      structuredClone(withEmail(email).filter(({ emailVerified }) => emailVerified)),

    findByEmail: async (email) => structuredClone(withEmail(email)),

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
