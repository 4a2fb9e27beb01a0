import { time } from './conditions.ts'
import { dateOf, isObject } from './values.ts'

interface TypeOf {
  string: string
  date: Date
  bool: boolean
  int: number
  null: null
}

type Base = keyof TypeOf
type Suffix = '?' | '|undefined' | '|null'

/**
 * The fields of a record, and what they are. One with `?` may be left out. One with `|undefined` is left out in documents alone, and one
 * with `|null` is null in documents.
 */
export interface FieldTypes {
  readonly [name: string]: Base | `${Base}${Suffix}` | FieldTypes
}

/** A document of these fields. Their names are in snake_case there: `accountId` is `account_id`, and `id` is `_id`. */
export type DocumentOf<T extends FieldTypes> = {
  -readonly [N in Exclude<keyof T, Named<T, '?' | '|undefined'>> as Stored<N>]: InDocument<T[N]>
} & { -readonly [N in Named<T, '?' | '|undefined'> as Stored<N>]?: InDocument<T[N]> }

/** A record of these fields. */
type RecordOf<T extends FieldTypes> = {
  -readonly [N in Exclude<keyof T, Named<T, '?'>>]: InRecord<T[N]>
} & { -readonly [N in Named<T, '?'>]?: InRecord<T[N]> }

/** What a document can be made of. */
type Given<T extends FieldTypes> = {
  [N in Exclude<keyof T, Named<T, Suffix>>]: T[N] extends FieldTypes ? Given<T[N]> : InRecord<T[N]>
} & { [N in Named<T, Suffix>]?: InRecord<T[N]> | undefined }

type Named<T, S extends Suffix> = {
  [N in keyof T]: T[N] extends `${Base}${S}` ? N : never
}[keyof T]

type InDocument<T> = T extends FieldTypes
  ? DocumentOf<T>
  : ValueOf<T> | (T extends `${Base}|null` ? null : never)

type InRecord<T> = T extends FieldTypes
  ? RecordOf<T>
  : ValueOf<T> | (T extends `${Base}|${string}` ? undefined : never)

type ValueOf<T> = { [B in Base]: T extends B | `${B}${Suffix}` ? TypeOf[B] : never }[Base]

type Stored<N> = N extends 'id' ? '_id' : N extends string ? SnakeCase<N> : never

type SnakeCase<N extends string> = N extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : N

/** The name of a field in documents. */
export function storedName(name: string): string {
  return name === 'id' ? '_id' : name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** @throws TypeError for a time that is none. */
export function toDocument<T extends FieldTypes>(record: Given<T>, types: T): DocumentOf<T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- by the same types
  return stored(record, types) as DocumentOf<T>
}

function stored(record: object, types: FieldTypes): object {
  const values = valuesOf(record)
  const fields = Object.entries(types).map(([name, type]) => {
    const value = values.get(name) ?? (isOfType(null, type) ? null : undefined)
    if (isObject(type) && isObject(value)) return [storedName(name), stored(value, type)]
    return [storedName(name), value instanceof Date ? time(value) : value]
  })
  return Object.fromEntries(fields.filter(([, value]) => value !== undefined))
}

/** What is not of its type is as if it were not there. */
export function fromDocument<T extends FieldTypes>(document: object, types: T): RecordOf<T> {
  const values = valuesOf(document)
  const fields = Object.entries(types).map(([name, type]): [string, unknown] => {
    const value = values.get(storedName(name)) ?? undefined
    if (isObject(type) && isObject(value)) return [name, fromDocument(value, type)]
    return [name, isOfType(value, type) ? value : undefined]
  })
  const told = fields.filter(([name, value]) => value !== undefined || !mayBeLeftOut(types[name]))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- by the same types
  return Object.fromEntries(told) as RecordOf<T>
}

const mayBeLeftOut = (type: unknown) => typeof type === 'string' && type.endsWith('?')

/**
 * Whether fields exist and have these types. A record that was damaged, or written by somebody else, does not, and is then judged as
 * none: it is never usable.
 */
export function hasTypes(document: object, types: FieldTypes): boolean {
  const values = valuesOf(document)
  return Object.entries(types).every(([name, type]) => isOfType(values.get(storedName(name)), type))
}

function isOfType(value: unknown, type: FieldTypes[string]): boolean {
  if (typeof type !== 'string') return isObject(value) && hasTypes(value, type)
  const [base = '', or] = type.split(/[?|]/)
  if (value === undefined) return or === '' || or === 'undefined'
  return (value === null && or === 'null') || IS.get(base)?.(value) === true
}

const IS = new Map<string, (value: unknown) => boolean>([
  ['string', (value) => typeof value === 'string'],
  ['date', (value) => dateOf(value) !== undefined],
  ['bool', (value) => typeof value === 'boolean'],
  ['int', (value) => Number.isSafeInteger(value)],
  ['null', (value) => value === null],
])

const valuesOf = (record: object) => new Map<string, unknown>(Object.entries(record))
