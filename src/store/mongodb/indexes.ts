import type { Collection, IndexDescription } from 'mongodb'
import { AccountFlowsError } from '../../errors.ts'
import { isDuplicateKey, serverErrorCode } from './errors.ts'

export type NamedIndex = IndexDescription & { name: string }

interface IndexedCollection {
  db: { createCollection(name: string, options?: object): Promise<object> }
  collectionName: string
  createIndexes(indexes: NamedIndex[]): Promise<unknown>
}

const NAMESPACE_NOT_FOUND = 26
const NAMESPACE_EXISTS = 48
const INDEX_OPTIONS_CONFLICT = 85
const INDEX_KEY_SPECS_CONFLICT = 86

/** The indexes that are missing or have other options, as `collection.index`; all of them where there is no collection. */
export async function wrongIndexes(
  collection: Pick<Collection, 'collectionName' | 'indexes'>,
  indexes: NamedIndex[],
): Promise<string[]> {
  const listed = await collection.indexes().catch((error: unknown) => {
    if (serverErrorCode(error) === NAMESPACE_NOT_FOUND) return []
    throw error
  })
  const found = new Set(listed.map(definitionOf))
  return [ofEveryCollection, ...indexes]
    .filter((index) => !found.has(definitionOf(index)))
    .map(({ name }) => `${collection.collectionName}.${name}`)
}

const ofEveryCollection: NamedIndex = { name: '_id_', key: { _id: 1 } }

/** As text: the order of the fields in a key matters. */
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

/** Creates the collection and the indexes that are missing, one after the other. */
export async function createIndexes(collection: IndexedCollection, indexes: NamedIndex[]) {
  const { db, collectionName: name } = collection
  await db.createCollection(name, { writeConcern: { w: 'majority' } }).catch((error: unknown) => {
    if (serverErrorCode(error) !== NAMESPACE_EXISTS) throw error
  })
  for (const index of indexes)
    await collection.createIndexes([index]).catch((error: unknown) => {
      throw explained(error, name, index.name)
    })
}

function explained(error: unknown, collection: string, index: string): unknown {
  const subject = `The index "${index}" of the collection "${collection}" cannot be created`
  // Without the server's message, which quotes the value: it may be somebody's username.
  if (isDuplicateKey(error))
    return new AccountFlowsError(
      'ERR_STORE_INDEX',
      `${subject}: several documents have the same value. Make the values unique, then start again.`,
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
