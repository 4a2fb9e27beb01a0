import bcrypt from 'bcrypt'
import type { User } from '../ports/index.ts'
import { hashQueue, type HashQueue } from './hash-queue.ts'
import { hashPassword, isReadWhole } from './password.ts'
import { newToken } from './token.ts'

/** How you hash passwords if not with bcrypt, for example with Argon2. */
export interface Hashing {
  /** Answers a salted hash with all that `verify` needs, always at the same cost. */
  hash(password: string): Promise<string>
  /** `false` also for a hash that it cannot read. */
  verify(password: string, hash: string): Promise<boolean>
}

export type VerifyPassword = (
  user: Pick<User, 'passwordHash' | 'disabled'> | undefined,
  password: string,
  network?: string,
) => Promise<boolean>

/**
 * What resets and logins hash with, in one queue.
 *
 * @param tellDearer - is told the cost of a stored hash whose account can be told by time.
 */
export function createHashing(
  hashing: Hashing | undefined,
  bcryptCost: number,
  tellDearer: (cost: number) => void,
) {
  const hash = (password: string) =>
    hashing ? hashing.hash(password) : hashPassword(password, bcryptCost)
  return {
    hashPassword: (password: string, network?: string) => hashQueue(() => hash(password), network),
    verifyPassword: hashing
      ? verifyWith(hashing)
      : createVerifyPassword(bcryptCost, hashQueue, tellDearer),
  }
}

/** The same for every user, known or not: one `verify`. Where there is no hash, it is of one that nobody has the password of. */
function verifyWith(hashing: Hashing): VerifyPassword {
  let nobodys: string | undefined
  return async (user, password, network) =>
    hashQueue(async () => {
      // For everybody, or the first unknown user would take longer.
      nobodys ??= await hashing.hash(newToken())
      const stored = user?.passwordHash
      const isMatch = await hashing.verify(password, stored ?? nobodys)
      return isMatch && stored !== undefined && !user?.disabled && password.isWellFormed()
    }, network)
}

/** bcrypt takes no lower one. */
const LOWEST_COST = 4
const READABLE = /^\$2[aby]\$(0[4-9]|[12]\d|3[01])(\$[./A-Za-z0-9]{53})$/

/** How much dearer than `bcryptCost` a stored hash may be for everybody to pay for it: four times the rounds. */
const FOLLOWED_COSTS = 2

/**
 * The same bcrypt work for every user, known or not, in one turn of the queue. From the first sight of a
 * dearer hash on, that is the work of its cost. A hash beyond `FOLLOWED_COSTS` is compared alone, and told.
 */
export function createVerifyPassword(
  bcryptCost: number,
  queue: HashQueue,
  tellDearer: (cost: number) => void = () => {},
): VerifyPassword {
  let highestCost = bcryptCost

  function workFor(hash: ReadableHash | undefined): string[] {
    if (hash && hash.cost > bcryptCost + FOLLOWED_COSTS) {
      tellDearer(hash.cost)
      return [hash.text]
    }
    highestCost = Math.max(highestCost, hash?.cost ?? 0)
    return sameWork(hash, highestCost)
  }

  return async (user, password, network) => {
    const hash = readable(user?.passwordHash)
    const work = workFor(hash)
    const mayMatch = !user?.disabled && isReadWhole(password)
    return queue(async () => {
      let matches = false
      for (const each of work) {
        const isMatch = await bcrypt.compare(password, each)
        matches ||= isMatch && each === hash?.text
      }
      return matches && mayMatch
    }, network)
  }
}

type ReadableHash = NonNullable<ReturnType<typeof readable>>

/** `undefined`: no password can match, and bcrypt would say so without any work. */
export function readable(stored: string | undefined) {
  const [, cost, rest] = READABLE.exec(stored ?? '') ?? []
  if (stored === undefined || cost === undefined) return undefined
  // `y` is what PHP writes for the same algorithm, and what bcrypt refuses.
  return { text: stored.startsWith('$2y') ? `$2b$${cost}${rest}` : stored, cost: Number(cost) }
}

/**
 * The hashes to compare a password with. Their number and their sum of rounds are always the same, whatever the cost of the
 * stored hash, up to `cost`. The number matters too: each hash takes a little time besides its rounds.
 */
export function sameWork(hash: ReadableHash | undefined, cost: number): string[] {
  const first = hash ?? { text: nobody(cost), cost }
  const others = cost + 1
  const rest = 2 ** cost - 2 ** first.cost + others * 2 ** LOWEST_COST
  return [first.text, ...costsOf(rest, others).map(nobody)]
}

/** Costs of so many hashes that have so many rounds together. */
function costsOf(rounds: number, count: number): number[] {
  const costs: number[] = []
  let left = rounds
  while (left > 0) {
    const cost = Math.floor(Math.log2(left))
    costs.push(cost)
    left -= 2 ** cost
  }
  while (costs.length < count) {
    const [highest = LOWEST_COST] = costs
    costs.splice(0, 1, highest - 1, highest - 1)
    costs.sort((a, b) => b - a)
  }
  return costs
}

/** The hash of no password at all. */
function nobody(cost: number): string {
  return `$2b$${String(cost).padStart(2, '0')}$${'.'.repeat(53)}`
}
