import bcrypt from 'bcrypt'
import type { User } from '../contract/index.ts'
import { hashOf } from '../contract/users.ts'
import { hashQueue, type HashQueue } from './hash-queue.ts'
import { isPlain, isShortEnough } from './password.ts'
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

/** Hashes and compares, in one queue. `warnOfCost` gets the cost of a stored hash that strangers recognise by its time. */
export function createHashing(
  hashing: Hashing | undefined,
  bcryptCost: number,
  warnOfCost: (cost: number) => void,
) {
  const hash = (password: string) =>
    hashing ? hashing.hash(password) : bcrypt.hash(password, bcryptCost)
  return {
    hashPassword: (password: string, network?: string) => hashQueue(() => hash(password), network),
    verifyPassword: hashing
      ? verifyWith(hashing)
      : createVerifyPassword(bcryptCost, hashQueue, warnOfCost),
  }
}

/** One `verify` for every user, known or not. Without a stored hash, it gets the hash of a random password. */
function verifyWith(hashing: Hashing): VerifyPassword {
  let unknownUsersHash: string | undefined
  return async (user, password, network) =>
    hashQueue(async () => {
      // For every user: otherwise the first unknown one would take longer.
      unknownUsersHash ??= await hashing.hash(newToken())
      const stored = user && hashOf(user)
      const isMatch = await hashing.verify(password, stored ?? unknownUsersHash)
      return isMatch && stored !== undefined && !user?.disabled && password.isWellFormed()
    }, network)
}

const LOWEST_COST = 4
const READABLE = /^\$2[aby]\$(0[4-9]|[12]\d|3[01])(\$[./A-Za-z0-9]{53})$/

/** How far a stored cost may be above `bcryptCost` while all checks still take the same time: four times the rounds. */
const FOLLOWED_COSTS = 2

/**
 * Does the same bcrypt work for every user, known or not. After it sees a hash of a higher cost, every check does the work of that cost. A
 * hash beyond `FOLLOWED_COSTS` is compared alone, with a warning.
 */
export function createVerifyPassword(
  bcryptCost: number,
  queue: HashQueue,
  warnOfCost: (cost: number) => void = () => {},
): VerifyPassword {
  let highestCost = bcryptCost

  function workFor(hash: ReadableHash | undefined): string[] {
    if (hash && hash.cost > bcryptCost + FOLLOWED_COSTS) {
      warnOfCost(hash.cost)
      return [hash.text]
    }
    highestCost = Math.max(highestCost, hash?.cost ?? 0)
    return sameWork(hash, highestCost)
  }

  return async (user, password, network) => {
    const hash = readable(user?.passwordHash)
    const work = workFor(hash)
    const mayMatch = !user?.disabled && isPlain(password) && isShortEnough(password)
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

/** `undefined`: bcrypt would refuse it at once, without any work. */
export function readable(stored: string | undefined) {
  const [, cost, rest] = READABLE.exec(stored ?? '') ?? []
  if (stored === undefined || cost === undefined) return undefined
  // PHP writes `y` for the same algorithm; the package bcrypt refuses that.
  return { text: stored.startsWith('$2y') ? `$2b$${cost}${rest}` : stored, cost: Number(cost) }
}

/**
 * The hashes to compare a password with. Their number and their sum of rounds are always the same, whatever the cost of the stored hash, up
 * to `cost`. The number matters too: each hash takes a little time besides its rounds.
 */
export function sameWork(hash: ReadableHash | undefined, cost: number): string[] {
  const first = hash ?? { text: unmatchableHash(cost), cost }
  const others = cost + 1
  const rest = 2 ** cost - 2 ** first.cost + others * 2 ** LOWEST_COST
  return [first.text, ...costsOf(rest, others).map(unmatchableHash)]
}

/** The costs of `count` hashes that have `rounds` rounds together. */
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

function unmatchableHash(cost: number): string {
  return `$2b$${String(cost).padStart(2, '0')}$${'.'.repeat(53)}`
}
