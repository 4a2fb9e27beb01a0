/** How records are kept: the verbs that a store for any database implements. This file does not know what a record means. */

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
   * The changes are independent; no two have one id. Returns which were done. A change is done if the store still had its revision, and no
   * other record held its unique fields. For a removal, returns `true` also if the record is gone.
   */
  swap(kind: Kind, changes: readonly Change[]): Promise<boolean[]>
}
