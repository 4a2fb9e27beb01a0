/** Values of a record that may be damaged; `undefined` for one of another type. */
export function stringOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** Likewise; also `undefined` for a time that JavaScript does not know. */
export function dateOf(value: unknown): Date | undefined {
  return value instanceof Date && !Number.isNaN(value.getTime()) ? value : undefined
}

type Type = keyof TypeOf

/** The types that a field may have, or those of the fields in it. */
export interface FieldTypes {
  [name: string]: Type | readonly Type[] | { optional: FieldTypes }
}

interface TypeOf {
  string: string
  date: Date
  bool: boolean
  int: number
  null: null
}

type ValueOf<T> = T extends Type
  ? TypeOf[T]
  : T extends readonly Type[]
    ? TypeOf[T[number]]
    : T extends { optional: infer Inner extends FieldTypes }
      ? Fields<{}, Inner>
      : never

/** A document whose fields have these types. */
export type Fields<Required extends FieldTypes, Optional extends FieldTypes = {}> = {
  -readonly [Name in keyof Required]: ValueOf<Required[Name]>
} & { -readonly [Name in keyof Optional]?: ValueOf<Optional[Name]> }

/**
 * Whether fields exist and have these types. A record that was damaged, or written by somebody else, does not, and is then judged as
 * none: it is never usable.
 */
export function hasTypes(record: object, required: FieldTypes, optional: FieldTypes = {}): boolean {
  const values = new Map<string, unknown>(Object.entries(record))
  return (
    Object.entries(required).every(([name, type]) => isOfType(values.get(name), type)) &&
    Object.entries(optional).every(
      ([name, type]) => !values.has(name) || isOfType(values.get(name), type),
    )
  )
}

function isOfType(value: unknown, type: FieldTypes[string]): boolean {
  if (typeof type === 'string') return IS[type](value)
  if ('optional' in type) return isObject(value) && hasTypes(value, {}, type.optional)
  return type.some((each) => IS[each](value))
}

const IS: Record<Type, (value: unknown) => boolean> = {
  string: (value) => typeof value === 'string',
  date: (value) => dateOf(value) !== undefined,
  bool: (value) => typeof value === 'boolean',
  int: (value) => Number.isSafeInteger(value),
  null: (value) => value === null,
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
