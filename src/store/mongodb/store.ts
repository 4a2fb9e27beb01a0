/** Keeps records in MongoDB. It knows kinds and their fields, and never what a record means. */
import type { AnyBulkWriteOperation, Collection, Db, Document } from 'mongodb'
import { AccountFlowsError } from '../../errors.ts'
import { checkQuery, isDone, isOfAny, keptText, storedOf, textOf } from '../record-checks.ts'
import type { Change, Kind, Query, RecordStore, Stored, Value } from '../record-store.ts'
import {
  createIndexes,
  duplicatesIn,
  indexesOf,
  operationOptions,
  refuse,
  wrongIndexes,
} from './driver.ts'

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
      return found.map((document) => storedFrom(kind, document))
    },

    async swap(kind, changes) {
      const collection = collectionOf(kind)
      const isNew = (change: Change) => change.revision === undefined || isOfAny(change)
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
  const filter = { _id: { $in: wanted } }
  const documents = await collection.find(filter).toArray().catch(refuse)
  const found = new Map(documents.map((document) => [document._id, storedFrom(kind, document)]))
  return wanted.map((id) => found.get(id))
}

/** Inserts records, and overwrites or removes those of any revision. Returns the changes that were done. */
async function insert(into: Collection<Kept>, kind: Kind, changes: Change[]): Promise<Change[]> {
  if (changes.length === 0) return []
  const writes = changes.map((change) => insertion(kind, change))
  const taken = await duplicatesIn(into.bulkWrite(writes, { ordered: false }))
  // When two changes overwrite a record that does not exist yet, the later one finds it on the second try.
  const again = changes.filter((change, index) => taken.has(index) && isOfAny(change))
  const done = changes.filter((_, index) => !taken.has(index))
  return [...done, ...(await insert(into, kind, again))]
}

function insertion(kind: Kind, change: Change): AnyBulkWriteOperation<Kept> {
  const [_id, document] = [keptText(change.id), documentOf(kind, change)]
  if (!document) return { deleteOne: { filter: { _id } } }
  if (isOfAny(change))
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

type Kept = Document & { _id: string }

/** Stands for a field that was removed outside the store. It matches no field type. */
const MISSING = Symbol('missing')

/** `undefined`: the change removes the record. */
function documentOf({ fields, unique }: Kind, { id, revision, next, becomes }: Change) {
  if (!next) return undefined
  const was = typeof revision === 'string' ? revision : null
  const document: Kept = { _id: keptText(id), _rev: becomes, _was: was }
  for (const [name, type] of Object.entries(fields)) {
    const value = next[name]
    if (value !== undefined) document[name] = type === 'json' ? keptJson(value) : kept(value)
    else if (!unique.includes(name)) document[name] = null
  }
  return document
}

/** Keeps fields that the host has added. */
function updateOf({ unique }: Kind, { _id, ...fields }: Kept): Document {
  const left = unique.filter((name) => !(name in fields)).map((name) => [name, true])
  return { $set: fields, ...(left.length > 0 && { $unset: Object.fromEntries(left) }) }
}

const kept = (value: Value) => (typeof value === 'string' ? keptText(value) : value)

/** Stores JSON as objects and lists, which an admin can read and edit. What `JSON.stringify` leaves out is not kept. */
const keptJson = (value: Value): unknown => withTexts(JSON.parse(JSON.stringify(value)), keptText)
const readJson = (value: unknown) => withTexts(JSON.parse(JSON.stringify(value) ?? 'null'), textOf)

function withTexts(json: unknown, other: (text: string) => string): unknown {
  if (typeof json === 'string') return other(json)
  if (Array.isArray(json)) return json.map((one) => withTexts(one, other))
  if (typeof json !== 'object' || json === null) return json
  const named = Object.entries(json).map(([name, one]) => [other(name), withTexts(one, other)])
  return Object.fromEntries(named)
}

function storedFrom(kind: Kind, { _id, _rev: revision, _was: was, ...document }: Kept): Stored {
  const fields: Record<string, unknown> = {}
  for (const [name, type] of Object.entries(kind.fields)) {
    const value: unknown = document[name]
    if (value === undefined) fields[name] = kind.unique.includes(name) ? undefined : MISSING
    else if (type === 'json') fields[name] = readJson(value)
    else fields[name] = type === 'text' && typeof value === 'string' ? textOf(value) : value
  }
  return storedOf(kind, textOf(_id), { revision, was, fields })
}

export function sortOf({ equal = {}, by, after, isDescending }: Query): Record<string, 1 | -1> {
  const direction = isDescending ? -1 : 1
  if (by !== undefined) return { [by]: direction, _id: direction }
  return Object.keys(equal).length > 0 && !after ? {} : { _id: 1 }
}

export function filterOf(query: Query): Record<string, unknown> {
  const { equal = {}, by, from, below, after, isDescending } = query
  const filter: Document = {}
  for (const [name, value] of Object.entries(equal))
    filter[name] = Array.isArray(value) ? { $in: value.map(kept) } : { $eq: kept(value) }
  if (by === undefined) return after ? { ...filter, _id: { $gt: keptText(after.id) } } : filter
  const bounds: Document = { $ne: null }
  if (from !== undefined) bounds['$gte'] = kept(from)
  if (below !== undefined) bounds['$lt'] = kept(below)
  filter[by] = bounds
  if (!after) return filter
  const beyond = isDescending ? '$lt' : '$gt'
  const [value, id] = [kept(after.value ?? ''), keptText(after.id)]
  filter['$or'] = [{ [by]: { [beyond]: value } }, { [by]: value, _id: { [beyond]: id } }]
  return filter
}
