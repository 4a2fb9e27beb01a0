import type { Db, FindOptions, ObjectId, UpdateOptions } from 'mongodb'
import type { User, UserStore } from '../../ports/index.ts'
import { equalsInAsciiCase } from '../../ports/users.ts'
import { operationOptions } from './collection.ts'
import { isText, text } from './conditions.ts'
import { isDuplicateKey } from './errors.ts'
import { createIndexes, type NamedIndex } from './indexes.ts'
import { together } from './together.ts'
import { withUnavailable } from './unavailable.ts'
import { toUser } from './user-document.ts'

/** `db.collection('users')`, with the host's own document type or without. */
export interface UserCollection {
  db: Db
  collectionName: string
  find(filter: object, options: FindOptions): { toArray(): Promise<object[]> }
  updateOne(
    filter: object,
    update: object,
    options: UpdateOptions,
  ): Promise<{ matchedCount: number }>
  createIndexes(indexes: NamedIndex[]): Promise<unknown>
}

/** Exact bytes, whatever collation the host's collection has. */
const exactly = { ...operationOptions, collation: { locale: 'simple' } }

/** Finds a few too many: other letters than ASCII in either case, characters that it ignores. */
const inAnyCase = { ...operationOptions, collation: { locale: 'en', strength: 2 } }

const indexes: NamedIndex[] = [
  {
    name: 'account_flows_username',
    key: { username: 1 },
    unique: true,
    partialFilterExpression: { username: { $type: 'string' } },
    collation: exactly.collation,
  },
  {
    name: 'account_flows_username_in_any_case',
    key: { username: 1 },
    collation: inAnyCase.collation,
  },
  {
    name: 'account_flows_verified_email',
    key: { email: 1, email_verified: 1 },
    collation: inAnyCase.collation,
  },
]

/**
 * Users in a collection with the fields `username`, `email`, `email_verified`, `password_hash`, `password_changed_at` and
 * `disabled`, and an `_id` that is a string or an `ObjectId`.
 */
export function mongoUsers(collection: UserCollection): UserStore {
  const { byId, byUsername, byUsernameInAnyCase, byVerifiedEmail, byEmail } = lookUps(collection)

  async function isUpdated(id: string, filter: object, update: object) {
    try {
      const its = { ...(await hasId(text(id))), ...filter }
      const { matchedCount } = await collection.updateOne(its, update, exactly)
      return matchedCount === 1
    } catch (error) {
      // The host allows one user per verified address, and another one has this one.
      if (isDuplicateKey(error)) return false
      throw error
    }
  }

  return withUnavailable<UserStore>({
    start: () => createIndexes(collection, indexes),

    async findById(id) {
      return isText(id) ? byId(id) : undefined
    },

    async findByUsername(username) {
      return isText(username) ? byUsername(username) : undefined
    },

    async findByUsernameInAnyCase(username) {
      return isText(username) ? byUsernameInAnyCase(username) : []
    },

    async findByVerifiedEmail(email) {
      return isText(email) ? byVerifiedEmail(email) : []
    },

    async findByEmail(email) {
      return isText(email) ? byEmail(email) : []
    },

    replacePasswordHash: (id, expected, next) =>
      isUpdated(id, { password_hash: text(expected) }, withPassword(next)),

    setFirstPassword(id, email, hash) {
      const hasNone = { password_hash: { $in: [null, ''], $not: { $type: 'array' } } }
      return isUpdated(
        id,
        { ...isEnabledWith(email), ...hasNone },
        withPassword(hash, { email_verified: true }),
      )
    },

    markEmailVerified: (id, email) =>
      isUpdated(
        id,
        { ...isEnabledWith(email), email_verified: { $ne: true } },
        { $set: { email_verified: true } },
      ),

    markEmailUnverified: (id, email) =>
      isUpdated(
        id,
        { email: text(email), email_verified: true },
        { $set: { email_verified: false } },
      ),
  })
}

function lookUps(collection: UserCollection) {
  async function find(filter: object, options: FindOptions): Promise<User[]> {
    const documents = await collection.find(filter, options).toArray()
    return documents.map(toUser).filter((user) => user !== undefined)
  }

  const byId = together(async (ids: string[]) => {
    const stored = await Promise.all(ids.map(idsOf))
    const users = await find({ _id: { $in: stored.flat() } }, exactly)
    return ids.map((id) => users.find((user) => user.id === id))
  })

  // The type is named because the index is on strings only; a list that holds the name matches all the same.
  const byUsername = together(async (names: string[]) => {
    const users = await find({ username: { $in: names, $type: 'string' } }, exactly)
    return names.map((name) => users.find(({ username }) => username === name))
  })

  const byUsernameInAnyCase = together(async (names: string[]) => {
    const users = await find({ username: { $in: names, $type: 'string' } }, inAnyCase)
    return names.map((name) => users.filter(({ username }) => equalsInAsciiCase(username, name)))
  })

  const byVerifiedEmail = together(async (emails: string[]) => {
    const users = await find({ email: { $in: emails }, email_verified: true }, inAnyCase)
    const verified = users.filter(({ emailVerified }) => emailVerified)
    return emails.map((email) =>
      verified.filter((user) => user.email && equalsInAsciiCase(user.email, email)),
    )
  })

  // The index of verified addresses begins with the address, and serves this too.
  async function byEmail(email: string) {
    const users = await find({ email }, inAnyCase)
    return users.filter((user) => user.email && equalsInAsciiCase(user.email, email))
  }

  return { byId, byUsername, byUsernameInAnyCase, byVerifiedEmail, byEmail }
}

function withPassword(hash: string, others: object = {}) {
  return {
    $set: { password_hash: text(hash), ...others },
    $currentDate: { password_changed_at: true },
  }
}

// What is no flag of ours counts as set.
function isEnabledWith(email: string) {
  return { email: text(email), disabled: { $in: [false, null], $not: { $type: 'array' } } }
}

async function hasId(id: string) {
  return { _id: { $in: await idsOf(id) } }
}

async function idsOf(id: string): Promise<(string | ObjectId)[]> {
  if (!/^[0-9a-f]{24}$/.test(id)) return [id]
  // Loaded here alone: hosts with another database have no driver.
  const { ObjectId } = await import('mongodb')
  return [id, new ObjectId(id)]
}
