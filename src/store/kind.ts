/** Defines the kinds: each maps a TypeScript record to the fields of a `Kind`. */
import type { FieldType, Fields, Kind, Stored } from './record-store.ts'
import { AccountFlowsError } from '../errors.ts'
import type { ChangedKind } from './records.ts'

interface Values {
  text: string
  number: number
  boolean: boolean
  time: Date
  json: object
}

/** The type of a field. With a `?`, a record may lack it. */
type TypeOf = FieldType | `${FieldType}?`

/** A field with a narrower TypeScript type. This checks nothing at run time; `isWhole` finds wrong values in the database. */
export const holds = <T>(type: TypeOf) =>
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a note for TypeScript, and no property
  type as TypeOf & { readonly of: T }

type ValueOf<Type> = Type extends { of: infer T }
  ? T
  : Type extends FieldType
    ? Values[Type]
    : Type extends `${infer Name extends FieldType}?`
      ? Values[Name] | undefined
      : never

type TypesOf = Readonly<Record<string, TypeOf>>

/** A record with these fields. Optional fields may be left out; a record that is read has them as `undefined`. */
export type RecordWith<F extends TypesOf> = { id: string } & {
  -readonly [N in keyof F as undefined extends ValueOf<F[N]> ? never : N]: ValueOf<F[N]>
} & {
  -readonly [N in keyof F as undefined extends ValueOf<F[N]> ? N : never]?: ValueOf<F[N]>
}

interface Definition<F extends TypesOf> extends Omit<ChangedKind, keyof Kind> {
  name: string
  fields: F
  indexes?: readonly (readonly (keyof F & string)[])[]
  unique?: readonly (keyof F & string)[]
  insertedAt?: keyof F & string
  purgedAt?: keyof F & string
  /** Checks what must be true of a whole record, besides the types of its fields. */
  isWhole?(record: RecordWith<F>): boolean
}

export interface KindOf<T extends { id: string }> extends ChangedKind {
  /** The fields of a record, without those that are `undefined`. */
  toFields(record: Omit<T, 'id'>): Fields
  /** `undefined`: the record is damaged. */
  read(stored: Stored): T | undefined
  /** @throws AccountFlowsError if the record is damaged. */
  toRecord(stored: Stored): T
}

export type RecordOf<K> = K extends KindOf<infer T> ? T : never

/** Names are in camelCase in the code, and in snake_case in the store. */
export function kindOf<const F extends TypesOf>(definition: Definition<F>): KindOf<RecordWith<F>> {
  const { name, indexes = [], unique = [], insertedAt, purgedAt, isWhole, ...handling } = definition
  const types = Object.entries<string>(definition.fields)
  const names = types.map(([field]) => [field, snakeCase(field)] as const)
  const typed = types.map(([field, type]) => [snakeCase(field), type.replace('?', '')])

  function read({ id, fields }: Stored): RecordWith<F> | undefined {
    if (!fields) return undefined
    const named = names.map(([field, stored]) => [field, fields[stored]])
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the store has checked each type
    const record = { id, ...Object.fromEntries(named) } as RecordWith<F>
    return !isWhole || isWhole(record) ? record : undefined
  }

  return {
    ...handling,
    name,
    read,
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the definition has nothing else
    fields: Object.fromEntries(typed) as Record<string, FieldType>,
    required: types.flatMap(([field, type]) => (type.endsWith('?') ? [] : [snakeCase(field)])),
    indexes: indexes.map((fields) => fields.map(snakeCase)),
    unique: unique.map(snakeCase),
    ...(insertedAt !== undefined && { insertedAt: snakeCase(insertedAt) }),
    ...(purgedAt !== undefined && { purgedAt: snakeCase(purgedAt) }),

    toFields(record) {
      const named = names.map(([field, stored]) => [stored, Reflect.get(record, field)])
      return defined(Object.fromEntries(named))
    },

    toRecord(stored) {
      const record = read(stored)
      if (record) return record
      const { id, damaged = 'its fields do not go together' } = stored
      const message = `A record of ${name} is damaged: ${damaged}. Remove it, or mend it; its id is ${id}`
      throw new AccountFlowsError('ERR_STORE_DAMAGED', message)
    },
  }
}

/** Copies an object without the properties that are `undefined`. */
export function defined<T extends object>(parts: T) {
  const known = Object.entries(parts).filter(([, value]) => value !== undefined)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- nothing else was left out
  return Object.fromEntries(known) as { [N in keyof T]?: Exclude<T[N], undefined> }
}

export const snakeCase = (name: string) =>
  name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** How long a record stays once it is over: pages explain late clicks, and a form that is sent again finds its id taken. */
export const WEEK_MS = 7 * 24 * 60 * 60 * 1000

/** Records of links outlive the mails that were sent before them. "This wasn't me" of those mails works for eight days. */
export const eightDaysAfter = (over: Date) => new Date(over.getTime() + (WEEK_MS / 7) * 8)

export const weekAfter = (over: Date) => new Date(over.getTime() + WEEK_MS)
