import type { HashQueue } from './hash-queue.ts'
import { hashPassword } from './password.ts'
import { newToken } from './token.ts'
import { createVerifyPassword, type VerifyPassword } from './verify-password.ts'

/** How a host hashes passwords whose hashes are not bcrypt's, such as Argon2. */
export interface Hashing {
  /** Answers a salted hash, always at the same cost, with all that `verify` needs. */
  hash(password: string): Promise<string>
  /** `false` also for a hash that it cannot read. */
  verify(password: string, hash: string): Promise<boolean>
}

/** What resets and logins hash with, in one queue. */
interface PasswordHashing {
  hashPassword(password: string): Promise<string>
  verifyPassword: VerifyPassword
}

export function createHashing(
  hashing: Hashing | undefined,
  bcryptCost: number,
  queue: HashQueue,
): PasswordHashing {
  if (hashing) {
    return {
      hashPassword: (password) => queue(() => hashing.hash(password)),
      verifyPassword: verifyWith(hashing, queue),
    }
  }
  return {
    hashPassword: (password) => queue(() => hashPassword(password, bcryptCost)),
    verifyPassword: createVerifyPassword(bcryptCost, queue),
  }
}

/** Whoever it is asked for: one `verify`, of a hash that nobody has the password of where there is none. */
function verifyWith(hashing: Hashing, queue: HashQueue): VerifyPassword {
  let nobodys: string | undefined
  return async (user, password) =>
    queue(async () => {
      // For everybody, or the first whom nobody knows would take longer.
      nobodys ??= await hashing.hash(newToken())
      const stored = user?.passwordHash
      const isMatch = await hashing.verify(password, stored ?? nobodys)
      return isMatch && stored !== undefined && !user?.disabled && password.isWellFormed()
    })
}
