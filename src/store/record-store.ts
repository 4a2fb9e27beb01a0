/** How records are kept: five verbs, which a store for any database has. What a record means is not known here. */
import { jsonOf } from '../errors.ts'

/** What a field holds. `json`: what `JSON.parse` can answer, but for `null`. */
export type FieldType = 'text' | 'number' | 'boolean' | 'time' | 'json'

/** What a field has. */
export type Value = string | number | boolean | Date | object

/** The fields of a record by name. A field that is absent is left out, and never `undefined` or `null`. */
export type Fields = Readonly<Record<string, Value>>

/** Records of one sort: a collection or a table. All names are in snake_case, as they are stored. */
export interface Kind {
  name: string
  fields: Readonly<Record<string, FieldType>>
  /** The fields that a record must have. */
  required: readonly string[]
  /** What records are found by: the equal fields, then one to order by. Those by a unique field, and by `purgedAt`, go without saying. */
  indexes: readonly (readonly string[])[]
  /** Texts of which two records never hold the same. They are set by the insert, and later left out at most. */
  unique: readonly string[]
  /** A time that the database sets in the insert, whatever is given for it. Later it is a field like others. */
  insertedAt?: string
  /** A time from which the record may be gone. */
  purgedAt?: string
}

/**
 * A record as it was read. `revision` names this state of it, `was` the state before; `was` is `undefined` for a record that was
 * inserted or overwritten. `damaged`: somebody changed it past the store, in the way that the sentence tells.
 */
export type Stored = { id: string; revision: string; was: string | undefined } & (
  { fields: Fields; damaged?: undefined } | { damaged: string; fields?: undefined }
)

/** What is looked for, by a declared index. */
export interface Query {
  /** Each field has this value, or one of these. */
  equal?: Readonly<Record<string, Value | readonly Value[]>>
  /** The records that have this field, in its order; those with the same value by id. Without it, the order of ids if nothing is in `equal`, or if `after` is given; otherwise none. */
  by?: string
  /** Of the field in `by`: from this value on. */
  from?: Value
  /** Of the field in `by`: smaller than this value. */
  below?: Value
  /** The values descend, and the ids of the same value. */
  isDescending?: boolean
  /** Goes on behind this record, within the range. */
  after?: { value?: Value; id: string }
  limit: number
}

/** The revision of a change that overwrites whatever there is. */
export const ANY = Symbol('any revision')

/** One write. It is done as a whole, or not at all. */
export interface Change {
  id: string
  /** The revision that was read. `undefined`: there is no such record yet; never of a removal. */
  revision: string | typeof ANY | undefined
  /** What the record is from now on. `undefined`: it is removed. */
  next: Fields | undefined
  /** Names the record from now on: random, made anew for each change. A change that is sent again has the same one. */
  becomes: string
}

/**
 * Keeps records. Each verb throws `ERR_STORE_UNAVAILABLE` where the database cannot be reached, or does not answer in time: a `swap`
 * may have been done by then.
 */
export interface RecordStore {
  /** Whether the database removes records by itself once their `purgedAt` has passed. Otherwise the flows do it. */
  purges: boolean

  /** Whether everything is lost when the process ends. Left out: it is not. */
  isVolatile?: boolean

  /** Whether writes wait for the disk before they are answered. Left out: they do. */
  isDurable?(): Promise<boolean>

  /** Makes collections or tables and their indexes, and adds what an earlier version did not have. It can be called again, and by several processes at once. */
  start(kinds: readonly Kind[]): Promise<void>

  /** The time of the database. */
  now(): Promise<Date>

  /** What is wrong with the indexes of these kinds, a name each: missing, or another one than it should be. Left out: it cannot be told. */
  inspect?(kinds: readonly Kind[]): Promise<string[]>

  /** In the order of the ids. `undefined`: there is no such record. */
  get(kind: Kind, ids: readonly string[]): Promise<(Stored | undefined)[]>

  /** Throws a `TypeError` where no declared index answers the query. */
  find(kind: Kind, query: Query): Promise<Stored[]>

  /**
   * Each change stands alone, in no order, and has an id of its own. Answers which were done: those whose revision was still the
   * one in the store, and whose unique fields no other record held. A removal is done where there is no such record any more.
   */
  swap(kind: Kind, changes: readonly Change[]): Promise<boolean[]>
}

/**
 * Throws a `TypeError` unless each value is of the type of its field, and the limit is a positive integer. A declared index must begin with
 * the equal fields, and go on with the one in `by`. An order that descends, and the value of a place, need a field in `by`.
 */
export function checkQuery(
  kind: Kind,
  { equal = {}, by, isDescending, from, below, after, limit }: Query,
): void {
  checkLimit(limit)
  for (const [name, values] of Object.entries(equal)) check(kind, name, [values].flat())
  const bounds = [from, below, after?.value].filter((value) => value !== undefined)
  if (by !== undefined) check(kind, by, bounds)
  if (by === undefined && isDescending) throw new TypeError('isDescending is of the field in by')
  if (by !== undefined && after && after.value === undefined)
    throw new TypeError(`after needs a value of ${by}`)
  const equals = Object.keys(equal)
  const isAnsweredBy = (index: readonly string[]) =>
    equals.every((field) => index.indexOf(field) >= 0 && index.indexOf(field) < equals.length) &&
    (by === undefined || index[equals.length] === by)
  if (equals.length === 0 && by === undefined) return
  const single = [...kind.unique, ...(kind.purgedAt === undefined ? [] : [kind.purgedAt])]
  if ([...kind.indexes, ...single.map((field) => [field])].some(isAnsweredBy)) return
  const asked = [...equals, ...(by === undefined ? [] : [by])].join(', ')
  throw new TypeError(`${kind.name} has no index by ${asked}`)
}

function check(kind: Kind, name: string, values: readonly Value[]): void {
  const type = kind.fields[name] ?? 'text'
  if (values.every((value) => isOfType(value, type))) return
  throw new TypeError(`${name} of ${kind.name} is to be a ${type}`)
}

/** Throws a `TypeError` unless it is a positive integer. */
export function checkLimit(limit: number): void {
  if (!Number.isSafeInteger(limit) || limit < 1) throw new TypeError('limit must be above 0')
}

/**
 * Throws a `TypeError` unless the id is a text, and the next state a whole record of its kind. A removal says of which revision. A record that may hold a unique place is never
 * overwritten whatever it is: the place may be held by another one.
 */
export function checkChange(kind: Kind, { id, revision, next }: Omit<Change, 'becomes'>): void {
  checkId(kind, id)
  if (!next && revision === undefined)
    throw new TypeError(`a record of ${kind.name} is removed by the revision that was read`)
  if (!next) return
  if (revision === ANY && kind.unique.length > 0)
    throw new TypeError(`a record of ${kind.name} is swapped by the revision that was read`)
  const { damaged } = storedOf(kind, id, { revision: '', was: '', fields: { ...next } })
  if (damaged !== undefined) throw new TypeError(`${kind.name} takes no such record: ${damaged}`)
}

/** Throws a `TypeError` unless it is a text. */
export function checkId({ name }: Kind, id: string): void {
  if (typeof id !== 'string') throw new TypeError(`the id of a record of ${name} is to be a text`)
}

/** What was read, checked: its revision is a text, and each field is of its type. */
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

/** Whether a change was done, by what was read after it. `false`: another one of the same state was. `undefined`: it cannot be told. */
export function isDone(
  { revision, next, becomes }: Change,
  found: Stored | undefined,
): boolean | undefined {
  if (next === undefined && !found) return true
  if (next !== undefined && (found?.revision === becomes || found?.was === becomes)) return true
  return found && found.was === revision ? false : undefined
}

/** NUL and halves of surrogate pairs, which databases refuse or replace; and what looks like a text that was changed for that. */
const UNKEPT = /[\0\p{Surrogate}]|^\\"/u

/** A text that every database keeps as it is. Nearly always it is the text itself. */
export const keptText = (text: string): string =>
  UNKEPT.test(text) ? `\\${JSON.stringify(text)}` : text

/** The text that was kept so. */
export function textOf(kept: string): string {
  const text = kept.startsWith('\\"') ? jsonOf(kept.slice(1)) : kept
  // Nobody else's text that looks like one.
  return typeof text === 'string' && keptText(text) === kept ? text : kept
}

const NO_JSON = Symbol('no JSON')

/** What a database keeps as the text of some JSON. A symbol where it is none: `storedOf` then says that the record is damaged. */
export const storedJson = (text: string): unknown => jsonOf(text) ?? NO_JSON
