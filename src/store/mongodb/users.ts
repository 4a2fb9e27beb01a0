import type { FindOptions } from 'mongodb'
import { equalsInAsciiCase, type User, type UserStore } from '../../contract/users.ts'
import { systemClock } from '../../clock.ts'
import { together } from '../batches.ts'
import { createIndexes, isDuplicateKey, operationOptions, refuse } from './driver.ts'
import type { NamedIndex } from './driver.ts'

/** The result of `db.collection('users')`, with or without the host's own document type. */
export interface UserCollection {
  db: { createCollection(name: string, options?: object): Promise<object> }
  collectionName: string
  find(filter: object, options: object): { toArray(): Promise<object[]> }
  updateOne(filter: object, update: object, options: object): Promise<{ matchedCount: number }>
  createIndexes(indexes: { name: string; key: Record<string, 1> }[]): Promise<unknown>
}

/** Compares exact bytes, whatever collation the host's collection has. */
const exactly = { ...operationOptions, collation: { locale: 'simple' } }

/** Matches too much, and the code filters the result: it ignores the case of non-ASCII letters, and ignores some characters. */
const inAnyCase = { ...operationOptions, collation: { locale: 'en', strength: 2 } }

const { collation } = inAnyCase
const indexes: NamedIndex[] = [
  {
    name: 'account_flows_username',
    key: { username: 1 },
    unique: true,
    partialFilterExpression: { username: { $type: 'string' } },
    collation: exactly.collation,
  },
  { name: 'account_flows_username_in_any_case', key: { username: 1 }, collation },
  { name: 'account_flows_verified_email', key: { email: 1, email_verified: 1 }, collation },
]

/**
 * Users in a collection with the fields `username`, `email`, `email_verified`, `password_hash`, `password_changed_at` and `disabled`, and
 * an `_id` that is a string or an `ObjectId`. `locale`, `may_choose_password`, `signs_in_elsewhere` and `may_replace_email` may be left out.
 */
export function mongoUsers(collection: UserCollection): UserStore {
  /** Finds users for texts of concurrent calls with one filter, and picks each call's part. */
  function lookUp<Found>(
    filterOf: (texts: string[]) => object | Promise<object>,
    options: FindOptions,
    pick: (users: User[], text: string) => Found,
  ) {
    const found = together(systemClock, async (texts: string[]) => {
      const documents = collection.find(await filterOf(texts), options).toArray()
      const users = (await documents.catch(refuse)).flatMap((document) => toUser(document) ?? [])
      return texts.map((text) => pick(users, text))
    })
    return async (text: string) => (isText(text) ? found(text) : pick([], text))
  }

  async function isUpdated(id: string, filter: object, update: object) {
    try {
      const its = { ...(await hasIds([text(id)])), ...filter }
      const { matchedCount } = await collection.updateOne(its, update, exactly)
      return matchedCount === 1
    } catch (error) {
      // The host allows one user per verified address, and another user has this one.
      return isDuplicateKey(error) ? false : refuse(error)
    }
  }

  return {
    start: () => createIndexes(collection, indexes),

    findById: lookUp(hasIds, exactly, (users, id) => users.find((user) => user.id === id)),

    findByUsername: lookUp(hasUsername, exactly, (users, name) =>
      users.find(({ username }) => username === name),
    ),

    findByUsernameInAnyCase: lookUp(hasUsername, inAnyCase, (users, name) =>
      users.filter(({ username }) => equalsInAsciiCase(username, name)),
    ),

    findByVerifiedEmail: lookUp(
      (emails) => ({ email: { $in: emails }, email_verified: true }),
      inAnyCase,
      (users, email) => withEmail(users, email).filter(({ emailVerified }) => emailVerified),
    ),

    // The index of verified addresses begins with the address, so it serves this query too.
    findByEmail: lookUp((emails) => ({ email: { $in: emails } }), inAnyCase, withEmail),

    replacePasswordHash: async (id, expected, next) =>
      isUpdated(id, { password_hash: text(expected) }, withPassword(next)),

    async setFirstPassword(id, email, hash) {
      const hasNone = { password_hash: { $in: [null, ''], $not: { $type: 'array' } } }
      const expected = { ...isEnabledWith(email), ...hasNone }
      return isUpdated(id, expected, withPassword(hash, { email_verified: true }))
    },

    markEmailVerified: async (id, email) => isUpdated(id, isUnverifiedWith(email), verified(true)),

    markEmailUnverified: async (id, email) =>
      isUpdated(id, { email: text(email), email_verified: true }, verified(false)),

    replaceEmail: async (id, expected, next) =>
      isUpdated(id, isUnverifiedWith(expected), verified(true, { email: text(next) })),
  }
}

/** For half of a surrogate pair, BSON would store another character, and the filter would match other users. */
const isText = (value: unknown): value is string =>
  typeof value === 'string' && !/\p{Surrogate}/u.test(value)

/** `undefined` would match a missing field, and MongoDB would read an object as operators. */
function text(value: string): string {
  if (!isText(value)) throw new TypeError('A value in a filter must be a well-formed string')
  return value
}

const verified = (email_verified: boolean, others: object = {}) => ({
  $set: { email_verified, ...others },
})

const withPassword = (hash: string, others: object = {}) => ({
  $set: { password_hash: text(hash), ...others },
  $currentDate: { password_changed_at: true },
})

// Any value of `disabled` other than these counts as set.
const isEnabledWith = (email: string) => ({
  email: text(email),
  disabled: { $in: [false, null], $not: { $type: 'array' } },
})

const isUnverifiedWith = (email: string) => ({
  ...isEnabledWith(email),
  email_verified: { $ne: true },
})

// The filter names the type because the index covers strings only. A list that contains the name still matches.
const hasUsername = (names: string[]) => ({ username: { $in: names, $type: 'string' } })

const withEmail = (users: User[], email: string) =>
  users.filter((user) => user.email && equalsInAsciiCase(user.email, email))

async function hasIds(ids: string[]) {
  const ofHex = ids.filter((id) => /^[0-9a-f]{24}$/.test(id))
  if (ofHex.length === 0) return { _id: { $in: ids } }
  // Loaded only here: hosts with another database have no driver.
  const { ObjectId } = await import('mongodb')
  return { _id: { $in: [...ids, ...ofHex.map((id) => new ObjectId(id))] } }
}

/** A field of another type counts as absent, but a disabled flag as set. `undefined`: no query could find a user with this `_id` again. */
function toUser(document: object): User | undefined {
  const { _id, ...fields }: Record<string, unknown> = { ...document }
  if (!isId(_id)) return undefined
  const locale = nonEmpty(fields['locale'])
  const signsInElsewhere = nonEmpty(fields['signs_in_elsewhere'])
  return {
    id: String(_id),
    username: nonEmpty(fields['username']) ?? '',
    email: nonEmpty(fields['email']),
    emailVerified: fields['email_verified'] === true,
    passwordHash: nonEmpty(fields['password_hash']),
    disabled: (fields['disabled'] ?? false) !== false,
    ...(locale !== undefined && { locale }),
    ...(fields['may_choose_password'] === true && { mayChoosePassword: true }),
    ...(signsInElsewhere !== undefined && { signsInElsewhere }),
    ...(fields['may_replace_email'] === true && { mayReplaceEmail: true }),
  }
}

const nonEmpty = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)

/** Does not use `instanceof ObjectId`: the host's driver may be another copy of the package. */
const isId = (id: unknown): boolean =>
  typeof id === 'string' || typeof Reflect.get(Object(id), 'toHexString') === 'function'
