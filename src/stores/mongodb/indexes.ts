import type { IndexDescription, IndexDescriptionInfo } from 'mongodb'
import { AccountFlowsError } from '../../errors.ts'
import { isDuplicateKey, serverErrorCode } from './errors.ts'

export type NamedIndex = IndexDescription & { name: string }

interface IndexedCollection {
  db: { createCollection(name: string, options?: object): Promise<object> }
  collectionName: string
  createIndexes(indexes: NamedIndex[]): Promise<unknown>
}

interface ListedCollection extends IndexedCollection {
  indexes(): Promise<IndexDescriptionInfo[]>
}

const NAMESPACE_NOT_FOUND = 26
const NAMESPACE_EXISTS = 48
const INDEX_OPTIONS_CONFLICT = 85
const INDEX_KEY_SPECS_CONFLICT = 86

/** The indexes that are missing or have other options, as `collection.index`; all of them where there is no collection. */
export async function wrongIndexes(
  collection: ListedCollection,
  indexes: NamedIndex[],
): Promise<string[]> {
  const found = new Set((await indexesOf(collection)).map(definitionOf))
  return [ofEveryCollection, ...indexes]
    .filter((index) => !found.has(definitionOf(index)))
    .map(({ name }) => `${collection.collectionName}.${name}`)
}

const ofEveryCollection: NamedIndex = { name: '_id_', key: { _id: 1 } }

async function indexesOf(collection: ListedCollection): Promise<IndexDescriptionInfo[]> {
  try {
    return await collection.indexes()
  } catch (error) {
    if (serverErrorCode(error) === NAMESPACE_NOT_FOUND) return []
    throw error
  }
}

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
export async function createIndexes(
  collection: IndexedCollection,
  indexes: NamedIndex[],
): Promise<void> {
  await createCollection(collection)
  for (const index of indexes) {
    try {
      await collection.createIndexes([index])
    } catch (error) {
      throw explained(error, collection.collectionName, index.name)
    }
  }
}

async function createCollection({ db, collectionName }: IndexedCollection): Promise<void> {
  try {
    await db.createCollection(collectionName, { writeConcern: { w: 'majority' } })
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
