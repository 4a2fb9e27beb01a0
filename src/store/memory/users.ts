import type { User, UserStore } from '../../contract/index.ts'
import { equalsInAsciiCase } from '../../contract/users.ts'

/** In JavaScript, a user object may lack these flags. */
const NO_FLAGS = { disabled: false, emailVerified: false }

/** Users in memory, for a first try and for tests. */
export function memoryUsers(initial: User[] = []): UserStore & { add(user: User): void } {
  const users = new Map<string, User>()
  const add = (user: User) => void users.set(user.id, { ...NO_FLAGS, ...user })
  initial.forEach(add)
  const withEmail = (email: string) =>
    [...users.values()].filter((user) => user.email && equalsInAsciiCase(user.email, email))

  /** Compare and set. */
  async function isChanged(id: string, expected: Partial<User>, changes: Partial<User>) {
    const user = users.get(id)
    const isExpected = Object.entries(expected).every(
      ([field, value]) => user && Reflect.get(user, field) === value,
    )
    if (user && isExpected) Object.assign(user, changes)
    return isExpected
  }

  return {
    /** Adds a user, or replaces the one with this id. */
    add,

    findById: async (id) => structuredClone(users.get(id)),

    findByUsername: async (username) =>
      structuredClone([...users.values()].find((user) => user.username === username)),

    findByUsernameInAnyCase: async (name) =>
      structuredClone([...users.values()].filter((user) => equalsInAsciiCase(user.username, name))),

    findByVerifiedEmail: async (email) =>
      structuredClone(withEmail(email).filter(({ emailVerified }) => emailVerified)),

    findByEmail: async (email) => structuredClone(withEmail(email)),

    replacePasswordHash: (id, passwordHash, next) =>
      isChanged(id, { passwordHash }, { passwordHash: next }),

    setFirstPassword(id, email, passwordHash) {
      const expected = { email, disabled: false, passwordHash: undefined }
      return isChanged(id, expected, { passwordHash, emailVerified: true })
    },

    markEmailVerified: (id, email) =>
      isChanged(id, { email, disabled: false, emailVerified: false }, { emailVerified: true }),

    markEmailUnverified: (id, email) =>
      isChanged(id, { email, emailVerified: true }, { emailVerified: false }),
  }
}
