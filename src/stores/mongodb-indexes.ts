import type { Db, IndexDescription } from 'mongodb'
import { AccountFlowsError } from '../errors.ts'
import { isDuplicateKey, serverErrorCode } from './mongodb-errors.ts'

export type NamedIndex = IndexDescription & { name: string }

interface IndexedCollection {
  collectionName: string
  createIndexes(indexes: NamedIndex[]): Promise<unknown>
}

const NAMESPACE_EXISTS = 48
const INDEX_OPTIONS_CONFLICT = 85
const INDEX_KEY_SPECS_CONFLICT = 86

/** A broom, never the judge: nothing relies on when it sweeps (D4). */
export const purgeIndex: NamedIndex = {
  name: 'purge_at_ttl',
  key: { purge_at: 1 },
  expireAfterSeconds: 0,
}

/** Creates the indexes that are missing, and the collection with them, one after the other. */
export async function createIndexes(
  collection: IndexedCollection,
  indexes: NamedIndex[],
): Promise<void> {
  for (const index of indexes) {
    try {
      await collection.createIndexes([index])
    } catch (error) {
      throw explained(error, collection.collectionName, index.name)
    }
  }
}

/** For a collection without indexes of its own, so that its first write under load need not create it. */
export async function createCollection(db: Db, name: string): Promise<void> {
  try {
    await db.createCollection(name, { writeConcern: { w: 'majority' } })
  } catch (error) {
    if (serverErrorCode(error) !== NAMESPACE_EXISTS) throw error
  }
}

function explained(error: unknown, collection: string, index: string): unknown {
  const subject = `The index "${index}" of the collection "${collection}" cannot be created`
  // Without the server's message, which quotes the value: it may be somebody's username.
  if (isDuplicateKey(error))
    return new AccountFlowsError(
      'ERR_STORE_INDEX',
      `${subject}: several documents have the same value. Make the values unique and start again.`,
    )
  const code = serverErrorCode(error)
  if (code !== INDEX_OPTIONS_CONFLICT && code !== INDEX_KEY_SPECS_CONFLICT) return error
  return new AccountFlowsError(
    'ERR_STORE_INDEX',
    `${subject}: one with other options exists. Drop it (db.${collection}.getIndexes() lists its name) and start ` +
      'again: it is created anew.',
    { cause: error },
  )
}
