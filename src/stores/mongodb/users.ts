import type { Db, FindOptions, UpdateOptions } from 'mongodb'
import type { UserStore } from '../../ports/index.ts'
import { equalsInAsciiCase } from '../../ports/ascii-case.ts'
import { operationOptions } from './collection.ts'
import { isText, text } from './conditions.ts'
import { isDuplicateKey } from './errors.ts'
import { createIndexes, type NamedIndex } from './indexes.ts'
import { withUnavailable } from './unavailable.ts'
import { toUser } from './user-document.ts'

/** `db.collection('users')`, with the host's own document type or without. */
export interface UserCollection {
  db: Db
  collectionName: string
  findOne(filter: object, options: FindOptions): Promise<object | null>
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
  async function findOne(filter: object) {
    const document = await collection.findOne(filter, exactly)
    return document ? toUser(document) : undefined
  }

  async function isUpdated(filter: object, update: object) {
    try {
      const { matchedCount } = await collection.updateOne(filter, update, exactly)
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
      return isText(id) ? findOne(await hasId(id)) : undefined
    },

    async findByUsername(username) {
      if (!isText(username)) return undefined
      // The type is named because the index is on strings only; a list that holds the name matches all the same.
      const user = await findOne({ username: { $eq: username, $type: 'string' } })
      return user?.username === username ? user : undefined
    },

    async findByVerifiedEmail(email) {
      if (!isText(email)) return []
      const documents = await collection
        .find({ email: { $eq: email }, email_verified: true }, inAnyCase)
        .toArray()
      return documents
        .map(toUser)
        .filter((user) => user !== undefined)
        .filter((user) => user.emailVerified && user.email && equalsInAsciiCase(user.email, email))
    },

    async replacePasswordHash(id, expected, next) {
      return isUpdated(
        { ...(await hasId(text(id))), password_hash: text(expected) },
        { $set: { password_hash: text(next) }, $currentDate: { password_changed_at: true } },
      )
    },

    async markEmailVerified(id, email) {
      return isUpdated(
        {
          ...(await hasId(text(id))),
          email: text(email),
          email_verified: { $ne: true },
          disabled: { $in: [false, null], $not: { $type: 'array' } },
        },
        { $set: { email_verified: true } },
      )
    },
  })
}

async function hasId(id: string) {
  if (!/^[0-9a-f]{24}$/.test(id)) return { _id: id }
  // Loaded here alone: hosts with another database have no driver.
  const { ObjectId } = await import('mongodb')
  return { _id: { $in: [id, new ObjectId(id)] } }
}
