import type { IncomingMessage } from 'node:http'
import type { Requester, User, UserStore } from '../contract/index.ts'
import { foldTyped } from '../contract/users.ts'
import type { VerifyPassword } from '../crypto/hashing.ts'
import type { RateLimits } from '../store/index.ts'
import { hashQueueOf, networkOf } from './requester.ts'

/** What a login page asks about the password that was typed. */
export interface LoginPassword {
  /**
   * Counts a try at a name, known or not, from the network of the request. Call it in your login POST, before `verifyPassword`.
   *
   * At most ten wrong passwords in 15 minutes are compared. They do not count for other networks. `verifyPassword` gives the try of a right
   * password back, if it gets the same request.
   *
   * @param username - as it was typed.
   * @returns `undefined`: go on. Otherwise compare nothing and answer 429, with this number of seconds as `Retry-After`.
   */
  limitLogin(req: IncomingMessage, username: string): Promise<number | undefined>
  /**
   * Whether this is the password of the user whom your login found. Give `undefined` if it found no user: the work is the same.
   *
   * `false` also for a user who is disabled or has no bcrypt hash (`$2a$`, `$2b$`, `$2y$`). Likewise for a password of more than 72 bytes
   * or with NUL: bcrypt reads only a part of those. Checks are padded to `bcryptCost`. After the first hash with a cost higher by one or
   * two, they are padded to that. Costlier hashes cannot be hidden: a stranger can see how long their check takes.
   *
   * It shares a queue with resets, in which each network has its share. If the queue is full, or too many checks of this network wait, it
   * throws `ERR_OVERLOADED`: answer 503 with `Retry-After`. With the option `hashing`, its `verify` replaces bcrypt, and must handle long
   * passwords itself.
   *
   * @param req - the request with the password. Without it, the check waits in one line with all other checks of no known network.
   */
  verifyPassword(
    user: Pick<User, 'passwordHash' | 'disabled'> | undefined,
    password: string,
    req?: IncomingMessage,
  ): Promise<boolean>
}

const MAX_TRIES = 10
const WINDOW_MS = 15 * 60_000

interface LoginPasswordParts {
  limits: RateLimits
  keyedHash(text: string): string
  users: UserStore
  requesterOf(req: IncomingMessage): Requester
  verifyPassword: VerifyPassword
}

export function createLoginPassword(parts: LoginPasswordParts) {
  const { limits, keyedHash, users, requesterOf, verifyPassword } = parts
  const counted = new WeakMap<IncomingMessage, string>()

  const keyOf = (name: string, { address }: Requester) =>
    `login:${keyedHash(JSON.stringify([foldName(name), networkOf(address)]))}`

  async function giveBack(req: IncomingMessage) {
    const key = counted.get(req)
    counted.delete(req)
    if (key !== undefined) await limits.giveBack(key)
  }

  const loginPassword: LoginPassword = {
    async limitLogin(req, username) {
      const key = keyOf(username, requesterOf(req))
      const { count, msToEnd } = await limits.hit(key, WINDOW_MS, MAX_TRIES)
      if (count > MAX_TRIES) return Math.max(1, Math.ceil(msToEnd / 1000))
      counted.set(req, key)
      return undefined
    },

    async verifyPassword(user, password, req) {
      // If the check throws, no password was compared.
      let isWrong = false
      try {
        isWrong = !(await verifyPassword(user, password, req && hashQueueOf(requesterOf(req))))
        return !isWrong
      } finally {
        if (req && !isWrong) await giveBack(req)
      }
    },
  }

  return {
    loginPassword,

    /** After a new password, its owner may sign in from that network at once, however many wrong passwords came before. */
    async forgetTries({ id, username, email }: User, by: Requester) {
      // A name that folds to another one may belong to another account. So may a username that is an address.
      const names = [username, email]
        .filter((name) => name !== undefined)
        .filter((name) => foldName(name) === foldTyped(name))
        .filter((name) => name === email || !name.includes('@'))
      await Promise.all(
        names.map(async (name) => {
          if (await isOnlyOf(users, name, id)) await limits.giveBack(keyOf(name, by), Infinity)
        }),
      )
    },
  }
}

/** Whether it is known that no other account has this username, in any letter case. */
async function isOnlyOf(users: UserStore, name: string, accountId: string) {
  const named = await users.findByUsernameInAnyCase?.(name)
  return named !== undefined && !named.some((user) => user && user.id !== accountId)
}

/** Coarser than any host's look-up. Otherwise a second spelling of a name would give more tries. */
function foldName(typed: string): string {
  return typed
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[\p{C}\p{M}\p{Z}]/gu, '')
}
