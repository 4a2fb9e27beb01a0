/** The kinds of the domain: a record of TypeScript on one side, the fields of a `Kind` on the other. */
import type { FieldType, Fields, Kind, Stored, Value } from '../ports/record-store.ts'
import { AccountFlowsError } from '../errors.ts'

type TypeOf<T> = [T] extends [string]
  ? 'text'
  : [T] extends [number]
    ? 'number'
    : [T] extends [boolean]
      ? 'boolean'
      : [T] extends [Date]
        ? 'time'
        : 'json'

type Name<T> = Exclude<keyof T & string, 'id'>

/** Of each field its type; with a `?` where a record may lack it. */
type TypesOf<T> = {
  readonly [N in Name<T>]-?: undefined extends T[N]
    ? `${TypeOf<Exclude<T[N], undefined>>}?`
    : TypeOf<T[N]>
}

/** What `kindOf` makes a kind of. */
export interface Definition<T> {
  name: string
  fields: TypesOf<T>
  indexes?: readonly (readonly Name<T>[])[]
  unique?: readonly Name<T>[]
  insertedAt?: Name<T>
  purgedAt?: Name<T>
  /** What is right in a whole record, besides the types of its fields. */
  isWhole?(record: T): boolean
  /** A change takes a damaged record for none, and begins anew. Otherwise it throws. */
  damagedIsNone?: boolean
  /** See `ChangedKind`. */
  isRemembered?: boolean
  isMostlyNew?: boolean
}

/** A kind whose records are of this type. */
export interface KindOf<T extends { id: string }> extends Kind {
  /** The name under which a field is stored. */
  nameOf(field: string): string
  /** The fields of a record, without those that are `undefined`. */
  toFields(record: Omit<T, 'id'>): Fields
  /** `undefined`: the record is damaged. */
  read(stored: Stored): T | undefined
  /** @throws AccountFlowsError where the record is damaged. */
  toRecord(stored: Stored): T
  damagedIsNone: boolean
  isRemembered: boolean
  isMostlyNew: boolean
}

/** Names are in camelCase in the code, and in snake_case where they are stored. */
export function kindOf<T extends { id: string }>(definition: Definition<T>): KindOf<T> {
  const { name, indexes = [], unique = [], insertedAt, purgedAt } = definition
  const { isWhole = () => true, damagedIsNone = false } = definition
  const { isRemembered = false, isMostlyNew = false } = definition
  const types = Object.entries<string>(definition.fields)
  const names = new Map(types.map(([field]) => [field, snakeCase(field)]))
  const required = types.filter(([, type]) => !type.endsWith('?'))
  const typed = types.map(([field, type]) => [snakeCase(field), type.replace('?', '')])

  function read({ id, fields }: Stored): T | undefined {
    if (!fields) return undefined
    const named = [...names].map(([field, stored]) => [field, fields[stored]])
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the store has checked each type
    const record = { id, ...Object.fromEntries(named) } as T
    return isWhole(record) ? record : undefined
  }

  return {
    name,
    damagedIsNone,
    isRemembered,
    isMostlyNew,
    read,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the definition has nothing else
    fields: Object.fromEntries(typed) as Record<string, FieldType>,
    required: required.map(([field]) => snakeCase(field)),
    indexes: indexes.map((fields) => fields.map(snakeCase)),
    unique: unique.map(snakeCase),
    ...(insertedAt !== undefined && { insertedAt: snakeCase(insertedAt) }),
    ...(purgedAt !== undefined && { purgedAt: snakeCase(purgedAt) }),

    nameOf: snakeCase,

    toFields(record) {
      const fields: Record<string, Value> = {}
      for (const [field, stored] of names) {
        const value: unknown = Reflect.get(record, field)
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the definition says its type
        if (value !== undefined) fields[stored] = value as Value
      }
      return fields
    },

    toRecord(stored) {
      const record = read(stored)
      if (record) return record
      throw damaged(name, stored)
    },
  }
}

const snakeCase = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** Says which record it is, and what is wrong with it. */
function damaged(name: string, { id, damaged = 'its fields do not go together' }: Stored) {
  const message = `A record of ${name} is damaged: ${damaged}. Remove it, or mend it; its id is ${id}`
  return new AccountFlowsError('ERR_STORE_DAMAGED', message)
}
