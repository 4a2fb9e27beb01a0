/** The parts that all code for MongoDB shares: options, indexes, and the meaning of errors. */
import type { Collection, CollectionOptions, IndexDescription } from 'mongodb'
import { AccountFlowsError } from '../../errors.ts'
import type { Kind } from '../record-store.ts'
import { z } from 'zod'

/** The options of every operation, whatever the host chose. Reads see every answered write; values come back as the expected types. */
export const operationOptions = {
  writeConcern: { w: 'majority' },
  readConcern: { level: 'local' },
  readPreference: 'primary',
  ignoreUndefined: false,
  raw: false,
  promoteValues: true,
  promoteLongs: true,
  useBigInt64: false,
} satisfies CollectionOptions

export type NamedIndex = IndexDescription & { name: string }

interface IndexedCollection {
  db: { createCollection(name: string, options?: object): Promise<object> }
  collectionName: string
  createIndexes(indexes: NamedIndex[]): Promise<unknown>
}

export function indexesOf({ indexes, unique, purgedAt }: Kind): NamedIndex[] {
  const keyOf = (fields: readonly string[]) =>
    Object.fromEntries(fields.map((field) => [field, 1 as const]))
  const ordered = indexes.map((fields) => {
    return { name: fields.join('_'), key: keyOf([...fields, '_id']) }
  })
  const single = unique.map((field) => {
    return { name: `${field}_unique`, key: keyOf([field]), unique: true, sparse: true }
  })
  if (purgedAt === undefined) return [...ordered, ...single]
  const purge = { name: `${purgedAt}_ttl`, key: keyOf([purgedAt]), expireAfterSeconds: 0 }
  return [...ordered, ...single, purge]
}

const NAMESPACE_NOT_FOUND = 26
const NAMESPACE_EXISTS = 48
/** The name or the keys of the index belong to one with other options. */
const INDEX_CONFLICTS = new Set<unknown>([85, 86])

/** Returns the indexes that are missing or have other options, as `collection.index`. If there is no collection, it returns all of them. */
export async function wrongIndexes(
  collection: Pick<Collection, 'collectionName' | 'indexes'>,
  indexes: NamedIndex[],
): Promise<string[]> {
  const listed = await collection.indexes().catch((error: unknown) => {
    return serverErrorCode(error) === NAMESPACE_NOT_FOUND ? [] : refuse(error)
  })
  const found = new Set(listed.map(definitionOf))
  return [{ name: '_id_', key: { _id: 1 } }, ...indexes]
    .filter((index) => !found.has(definitionOf(index)))
    .map(({ name }) => `${collection.collectionName}.${name}`)
}

/** Compares as text, because the order of the fields in a key matters. */
function definitionOf(index: IndexDescription): string {
  return JSON.stringify(OPTIONS.map((option) => index[option] ?? false))
}

const OPTIONS = [
  'name',
  'key',
  'unique',
  'sparse',
  'partialFilterExpression',
  'expireAfterSeconds',
  'collation',
  'hidden',
] as const

export async function createIndexes(collection: IndexedCollection, indexes: NamedIndex[]) {
  const { db, collectionName: name } = collection
  await db.createCollection(name, { writeConcern: { w: 'majority' } }).catch((error: unknown) => {
    if (serverErrorCode(error) !== NAMESPACE_EXISTS) refuse(error)
  })
  for (const index of indexes)
    await collection.createIndexes([index]).catch((error: unknown) => {
      refuse(explained(error, name, index.name))
    })
}

function explained(error: unknown, collection: string, index: string): unknown {
  const isDuplicate = isDuplicateKey(error)
  if (!isDuplicate && !INDEX_CONFLICTS.has(serverErrorCode(error))) return error
  const reason = isDuplicate
    ? 'several documents have the same value. Make the values unique, then start again.'
    : `one with other options exists. Drop it (db.${collection}.getIndexes() lists its name) and start again: it is created anew.`
  const message = `The index "${index}" of the collection "${collection}" cannot be created: ${reason}`
  // The server's message about a duplicate is left out: it quotes the value, which may be a username.
  return new AccountFlowsError('ERR_STORE_INDEX', message, isDuplicate ? {} : { cause: error })
}

const DUPLICATE_KEY = 11000

/** Does not use `instanceof`: the host's driver may be another copy of the package. */
const serverErrorCode = (error: unknown): unknown =>
  error instanceof Error && 'code' in error ? error.code : undefined

export const isDuplicateKey = (error: unknown) => serverErrorCode(error) === DUPLICATE_KEY

/** Returns the places of the writes whose key was taken; the others of the unordered command are done. It throws all other failures. */
export async function duplicatesIn(command: Promise<unknown>): Promise<Set<number>> {
  try {
    await command
    return new Set()
  } catch (error) {
    const failures = [error instanceof Error && Reflect.get(error, 'writeErrors')].flat()
    const { data: duplicates } = Duplicates.safeParse(failures)
    if (!duplicates) refuse(error)
    return new Set(duplicates.map(({ index }) => index))
  }
}

const Duplicates = z
  .array(z.object({ code: z.literal(DUPLICATE_KEY), index: z.number() }))
  .nonempty()

/** The driver's errors of connections, sessions and time. */
const NAMES = /Network|Closed|Cleared|NotConnected|ServerSelection|Timeout|ExpiredSession/

/** By the time that these reach the code, the driver has tried again if it may. */
const LABELS = ['RetryableWriteError', 'SystemOverloadedError']

/** The server is not the primary, is shutting down, cannot reach the others, or ran out of time. */
const CODES = new Set<unknown>([
  6, 7, 50, 64, 89, 91, 133, 134, 189, 262, 9001, 10058, 10107, 11600, 11602, 13435, 13436,
])

/** The driver passes these errors on when a socket breaks while it writes. */
const SOCKET_CODES = /^(EPIPE|ECONN(RESET|ABORTED)|ETIMEDOUT|E(HOST|NET)UNREACH|ERR_STREAM_\w+)$/

/** Throws `ERR_STORE_UNAVAILABLE` if MongoDB cannot be reached or does not answer in time, and every other error as it is. */
export function refuse(error: unknown): never {
  if (!isUnavailable(error)) throw error
  // The driver's message is left out: it contains the address of the database.
  const message = `MongoDB cannot be reached, or does not answer in time (${error.name})`
  throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', message, { cause: error })
}

// Compares names and does not use `instanceof`: the host's driver may be another copy of the package.
function isUnavailable(error: unknown): error is Error {
  if (!(error instanceof Error)) return false
  const code = serverErrorCode(error)
  const labels: unknown = Reflect.get(error, 'errorLabels')
  return (
    NAMES.test(error.name) ||
    CODES.has(code) ||
    (typeof code === 'string' && SOCKET_CODES.test(code)) ||
    (Array.isArray(labels) && LABELS.some((label) => labels.includes(label))) ||
    // A command with many writes wraps the driver's error.
    isUnavailable(Reflect.get(error, 'errorResponse'))
  )
}
