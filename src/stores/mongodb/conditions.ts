/** A lone surrogate: BSON would store another character in its place, and so match what was not asked for. */
const illFormed = /\p{Surrogate}/u

/** A string that may stand in a filter. `undefined` would match a missing field, an object would be read as operators. */
export function text<T extends string>(value: T): T {
  if (!isText(value)) throw new TypeError('A value in a filter must be a well-formed string')
  return value
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && !illFormed.test(value)
}

/** A time that may stand in a filter or a document. BSON would take an invalid one for 1970. */
export function time(value: Date): Date {
  if (!(value instanceof Date) || Number.isNaN(value.getTime()))
    throw new TypeError('A time must be a valid Date')
  return value
}

/** How many records a list may have. MongoDB would take 0 for all of them. */
export function atMost(limit: number): number {
  if (!Number.isSafeInteger(limit) || limit < 1)
    throw new TypeError('The limit of a list must be a positive integer')
  return limit
}

/** The field is a list. Other conditions look into lists. */
const isList = { $type: 'array' } as const

/** A time that was reached, and no list of such. */
export const reached = (at: Date) => ({ $lte: time(at), $not: isList })

/** A whole number, and no list of such. */
export const isNumber = { $type: 'int', $not: isList } as const

/** What is not of this type, or a list. */
export function isNot(field: string, type: 'string' | 'date' | 'int'): object {
  return { $or: [{ [field]: { $not: { $type: type } } }, { [field]: isList }] }
}
