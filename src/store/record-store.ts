/** How records are kept: the verbs that a store for any database implements. This file does not know what a record means. */
import { jsonOf, must } from '../errors.ts'

/** The type of a field. `json`: any result of `JSON.parse` except `null`. */
export type FieldType = 'text' | 'number' | 'boolean' | 'time' | 'json'

/** The value of a field. */
export type Value = string | number | boolean | Date | object

/** The fields of a record by name. An absent field is left out, and never `undefined` or `null`. */
export type Fields = Readonly<Record<string, Value>>

/** Records of one sort, in a collection or a table. All names are in snake_case, as they are stored. */
export interface Kind {
  name: string
  fields: Readonly<Record<string, FieldType>>
  /** The fields that a record must have. */
  required: readonly string[]
  /** What queries use: the equal fields, then one to order by. Unique fields and `purgedAt` have an index without being listed. */
  indexes: readonly (readonly string[])[]
  /** Text fields whose values differ in all records. The insert sets them; a later change may only remove them. */
  unique: readonly string[]
  /** A time that the database sets in the insert, whatever value is given. Later it is a field like others. */
  insertedAt?: string
  /** A time from which the record may be gone. */
  purgedAt?: string
}

/**
 * A record as it was read. `revision` names its state, `was` the state before; `was` is `undefined` after an insert or an overwrite.
 * `damaged`: the record was changed outside the store, and the sentence says how.
 */
export type Stored = { id: string; revision: string; was: string | undefined } & (
  { fields: Fields; damaged?: undefined } | { damaged: string; fields?: undefined }
)

/** A query, which a declared index must answer. */
export interface Query {
  /** Each field has this value, or one of these. */
  equal?: Readonly<Record<string, Value | readonly Value[]>>
  /**
   * Returns only records that have this field, in its order, and by id for the same value. Without it, records come in the order of ids if
   * `equal` is empty or `after` is given. Otherwise they come in no order.
   */
  by?: string
  /** A lower bound for the field in `by`; it includes this value. */
  from?: Value
  /** An upper bound for the field in `by`; it excludes this value. */
  below?: Value
  /** Reverses the order of the values, and of the ids with the same value. */
  isDescending?: boolean
  /** Continues after this record, within the range. */
  after?: { value?: Value; id: string }
  limit: number
}

/** The revision of a change that overwrites any record. */
export const ANY = Symbol('any revision')

/** One write. It is done as a whole, or not at all. */
export interface Change {
  id: string
  /** The revision that was read. `undefined`: there is no such record yet; a removal never has it. */
  revision: string | typeof ANY | undefined
  /** The new fields of the record. `undefined`: the change removes it. */
  next: Fields | undefined
  /** The new revision of the record: random, and new for each change. A change that is sent again keeps it. */
  becomes: string
}

/** Keeps records. Each verb throws `ERR_STORE_UNAVAILABLE` if the database does not answer in time. A `swap` may have been done by then. */
export interface RecordStore {
  /** Whether the database itself removes records once their `purgedAt` has passed. Otherwise the flows remove them. */
  purges: boolean
  /** Whether everything is lost when the process ends. Left out: it is not. */
  isVolatile?: boolean
  /** Whether writes wait for the disk before they are answered. Left out: they do. */
  isDurable?(): Promise<boolean>
  /** Creates collections or tables with indexes, and adds what an earlier version lacked. Several processes call it at once, and again. */
  start(kinds: readonly Kind[]): Promise<void>
  /** The time of the database. */
  now(): Promise<Date>
  /** Returns the names of indexes of these kinds that are missing or wrong. Left out: the store cannot check this. */
  inspect?(kinds: readonly Kind[]): Promise<string[]>
  /** Returns the records in the order of the ids. `undefined`: there is no such record. */
  get(kind: Kind, ids: readonly string[]): Promise<(Stored | undefined)[]>
  /** Throws a `TypeError` if no declared index answers the query. */
  find(kind: Kind, query: Query): Promise<Stored[]>
  /**
   * Each change stands alone, in no order, and has its own id. Returns which were done. A change is done if the store still had its
   * revision, and no other record held its unique fields. A removal is also done if there is no such record any more.
   */
  swap(kind: Kind, changes: readonly Change[]): Promise<boolean[]>
}

/**
 * Throws a `TypeError` unless each value has the type of its field, and the limit is a positive integer. A declared index must begin with
 * the equal fields, and continue with the one in `by`. A descending order, and a value in `after`, need a field in `by`.
 */
export function checkQuery(
  kind: Kind,
  { equal = {}, by, isDescending, from, below, after, limit }: Query,
): void {
  checkLimit(limit)
  for (const [name, values] of Object.entries(equal)) check(kind, name, [values].flat())
  const bounds = [from, below, after?.value].filter((value) => value !== undefined)
  if (by !== undefined) check(kind, by, bounds)
  must(by !== undefined || !isDescending, 'isDescending is of the field in by')
  must(by === undefined || !after || after.value !== undefined, `after needs a value of ${by}`)
  const equals = Object.keys(equal)
  const asked = by === undefined ? equals : [...equals, by]
  if (asked.length === 0) return
  const isAnsweredBy = (index: readonly string[]) =>
    equals.every((field) => index.slice(0, equals.length).includes(field)) &&
    (by === undefined || index[equals.length] === by)
  const single = kind.purgedAt === undefined ? kind.unique : [...kind.unique, kind.purgedAt]
  const indexes = [...kind.indexes, ...single.map((field) => [field])]
  must(indexes.some(isAnsweredBy), `${kind.name} has no index by ${asked.join(', ')}`)
}

function check(kind: Kind, name: string, values: readonly Value[]): void {
  const type = kind.fields[name] ?? 'text'
  const areOfType = values.every((value) => isOfType(value, type))
  must(areOfType, `${name} of ${kind.name} is to be a ${type}`)
}

/** Throws a `TypeError` unless the limit is a positive integer. */
export function checkLimit(limit: number): void {
  must(Number.isSafeInteger(limit) && limit > 0, 'limit must be above 0')
}

/**
 * Throws a `TypeError` unless the id is a text, and the next state is a whole record of its kind. An overwrite of any revision is refused
 * for kinds with unique fields: another record may hold the value.
 */
export function checkChange(kind: Kind, { id, revision, next }: Change): void {
  checkId(kind, id)
  if (!next) return
  const isOfAny = revision === ANY && kind.unique.length > 0
  must(!isOfAny, `a record of ${kind.name} is swapped by the revision that was read`)
  const { damaged } = storedOf(kind, id, { revision: '', was: '', fields: { ...next } })
  must(damaged === undefined, `${kind.name} takes no such record: ${damaged}`)
}

/** Throws a `TypeError` unless the id is a text. */
export function checkId({ name }: Kind, id: string): void {
  must(typeof id === 'string', `the id of a record of ${name} is to be a text`)
}

/** Checks a record that was read: its revision must be a text, and each field must have its type. */
export function storedOf(
  kind: Kind,
  id: string,
  read: { revision: unknown; was: unknown; fields: Record<string, unknown> },
): Stored {
  const fields: Record<string, Value> = {}
  const wrong = typeof read.revision === 'string' ? [] : ['revision']
  for (const [name, type] of Object.entries(kind.fields)) {
    const value = read.fields[name] ?? undefined
    if (isOfType(value, type)) fields[name] = value
    else if (value !== undefined || kind.required.includes(name)) wrong.push(name)
  }
  const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)
  const named = { id, revision: textOf(read.revision) ?? '', was: textOf(read.was) }
  if (wrong.length === 0) return { ...named, fields }
  return { ...named, damaged: `${wrong.join(', ')} of the record is missing or of another type` }
}

function isOfType(value: unknown, type: FieldType): value is Value {
  if (type === 'time') return value instanceof Date && !Number.isNaN(value.getTime())
  if (type === 'json') return value !== undefined && value !== null && typeof value !== 'symbol'
  return typeof value === (type === 'text' ? 'string' : type)
}

/** Whether a change was done, judged by the record after it. `false`: another change of that state was. `undefined`: this is unknown. */
export function isDone({ revision, next, becomes }: Change, found: Stored | undefined) {
  if (!next && !found) return true
  if (next && (found?.revision === becomes || found?.was === becomes)) return true
  return found && found.was === revision ? false : undefined
}

/** NUL and halves of surrogate pairs, which databases refuse or replace; and text that looks like an escaped one. */
const UNKEPT = /[\0\p{Surrogate}]|^\\"/u

/** Escapes a text so that every database keeps it. Nearly always it is the text itself. */
export const keptText = (text: string): string =>
  UNKEPT.test(text) ? `\\${JSON.stringify(text)}` : text

/** Restores a text from `keptText`. */
export function textOf(kept: string): string {
  const text = kept.startsWith('\\"') ? jsonOf(kept.slice(1)) : kept
  // A text that only looks escaped stays as it is.
  return typeof text === 'string' && keptText(text) === kept ? text : kept
}

const NO_JSON = Symbol('no JSON')

/** Parses stored JSON. If the text is not JSON, it returns a symbol, and `storedOf` then reports the record as damaged. */
export const storedJson = (text: string): unknown => jsonOf(text) ?? NO_JSON
