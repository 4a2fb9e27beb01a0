/** Keeps records and finds users in MongoDB. It knows kinds and their fields, and never what a record means. */
import type { AnyBulkWriteOperation, Collection, Db } from 'mongodb'
import { AccountFlowsError } from '../../errors.ts'
import {
  ANY,
  checkQuery,
  isDone,
  keptText,
  type Change,
  type Kind,
  type RecordStore,
} from '../record-store.ts'
import { createIndexes, duplicatesIn, operationOptions, refuse, wrongIndexes } from './driver.ts'
import {
  documentOf,
  filterOf,
  indexesOf,
  type Kept,
  sortOf,
  toldOf,
  updateOf,
} from './record-document.ts'

/** The `Db` of the driver, in any of its versions. Its types are not imported: hosts with another database do not have them. */
export interface MongoDatabase {
  collection(name: string, options?: object): object
  command(command: object, options?: object): Promise<object>
}

/** No dollar, no NUL, and short enough for the longest name in the 235 bytes of a sharded namespace. */
const PREFIX = /^(?!system\.)[A-Za-z_][\w.-]{0,63}$/

/**
 * Keeps each kind in a collection, under the names of its fields. `_rev` and `_was` are the two revisions. An absent field is `null`,
 * except for unique fields. Reads come from the primary and writes go to the majority, whatever the host chose for its `Db`.
 *
 * @param prefix - the beginning of all collection names, such as `shop_`; empty by default. Two issuers in one database need one each.
 * @throws TypeError if a collection name cannot begin with that prefix.
 */
export function mongoStore(
  database: MongoDatabase,
  { prefix }: { prefix?: string | undefined } = {},
): RecordStore {
  if (prefix !== undefined && !(typeof prefix === 'string' && PREFIX.test(prefix)))
    throw new TypeError(
      'prefix must be 1 to 64 letters, digits, "_", "-" and ".", begin with a letter or "_", and not with "system."; leave it out for none',
    )
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it is what the host got from the driver
  const db = database as Db
  const collectionOf = ({ name }: Kind) =>
    db.collection<Kept>(`${prefix ?? ''}${name}`, operationOptions)

  return {
    purges: true,

    async start(kinds) {
      for (const kind of kinds) await createIndexes(collectionOf(kind), indexesOf(kind))
    },

    async inspect(kinds) {
      const wrong = kinds.map((kind) => wrongIndexes(collectionOf(kind), indexesOf(kind)))
      return (await Promise.all(wrong)).flat()
    },

    async now() {
      const hello = db.command({ hello: 1 }, { readPreference: 'primary' })
      const { localTime } = await hello.catch(refuse)
      if (localTime instanceof Date) return localTime
      throw new Error('MongoDB did not tell its time')
    },

    get: (kind, ids) => read(collectionOf(kind), kind, ids),

    async find(kind, query) {
      checkQuery(kind, query)
      const options = { limit: query.limit, sort: sortOf(query) }
      // This store creates text ids only, so other documents are not its own.
      const filter = { $and: [{ _id: { $type: 'string' as const } }, filterOf(query)] }
      const found = await collectionOf(kind).find(filter, options).toArray().catch(refuse)
      return found.map((kept) => toldOf(kind, kept))
    },

    async swap(kind, changes) {
      const collection = collectionOf(kind)
      const isNew = ({ revision }: Change) => revision === undefined || revision === ANY
      const others = changes.filter((change) => !isNew(change))
      const done = await Promise.all([
        insert(collection, kind, changes.filter(isNew)),
        replace(collection, kind, others),
      ])
      const all = new Set(done.flat())
      return changes.map((change) => all.has(change))
    },
  }
}

async function read(collection: Collection<Kept>, kind: Kind, ids: readonly string[]) {
  const wanted = ids.map(keptText)
  const documents = await collection
    .find({ _id: { $in: wanted } })
    .toArray()
    .catch(refuse)
  const found = new Map(documents.map((kept) => [kept._id, toldOf(kind, kept)]))
  return wanted.map((id) => found.get(id))
}

/** Inserts records, and overwrites or removes those of any revision. Returns the changes that were done. */
async function insert(kept: Collection<Kept>, kind: Kind, changes: Change[]): Promise<Change[]> {
  if (changes.length === 0) return []
  const writes = changes.map((change) => insertion(kind, change))
  const taken = await duplicatesIn(kept.bulkWrite(writes, { ordered: false }))
  // When two changes overwrite a record that does not exist yet, the later one finds it on the second try.
  const again = changes.filter(({ revision }, index) => taken.has(index) && revision === ANY)
  const done = changes.filter((_, index) => !taken.has(index))
  return [...done, ...(await insert(kept, kind, again))]
}

function insertion(kind: Kind, change: Change): AnyBulkWriteOperation<Kept> {
  const [_id, document] = [keptText(change.id), documentOf(kind, change)]
  if (!document) return { deleteOne: { filter: { _id } } }
  if (change.revision === ANY)
    return { replaceOne: { filter: { _id }, replacement: document, upsert: true } }
  const { insertedAt } = kind
  if (insertedAt === undefined) return { insertOne: { document } }
  // No document has that revision yet. So this inserts, or it fails because the id is taken.
  const set = { $mergeObjects: [{ $literal: document }, { [insertedAt]: '$$NOW' }] }
  const filter = { _id, _rev: change.becomes }
  return { updateOne: { filter, update: [{ $replaceWith: set }], upsert: true } }
}

/** Swaps and removes records that were read before. Returns the changes that were done. */
async function replace(collection: Collection<Kept>, kind: Kind, changes: Change[]) {
  if (changes.length === 0) return []
  const writes = changes.map((change): AnyBulkWriteOperation<Kept> => {
    const filter = { _id: keptText(change.id), _rev: change.revision }
    const document = documentOf(kind, change)
    return document
      ? { updateOne: { filter, update: updateOf(kind, document) } }
      : { deleteOne: { filter } }
  })
  const written = collection.bulkWrite(writes, { ordered: false })
  const { matchedCount, deletedCount } = await written.catch(refuse)
  if (matchedCount + deletedCount === changes.length) return changes
  // The driver says how many were done, but not which.
  const ids = changes.map(({ id }) => id)
  const found = await read(collection, kind, ids)
  const done = changes.filter((change, index) => isDone(change, found[index]))
  if (done.filter(({ next }) => next).length === matchedCount) return done
  // If a record has changed twice since, it does not show which change was done.
  const message = 'records changed again before it could be read which changes were done'
  throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', message)
}
