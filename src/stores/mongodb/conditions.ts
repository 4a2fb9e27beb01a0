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

/** BSON knows times that JavaScript does not. */
const earliest = new Date(-8.64e15)
const latest = new Date(8.64e15)
export const isDate = { $gte: earliest, $lte: latest }

/** The condition that these fields hold no such time. What is no time at all is left to `hasTypes`. */
export function hasOnlyDates(...fields: string[]) {
  return {
    $nor: fields.flatMap((field) => [{ [field]: { $lt: earliest } }, { [field]: { $gt: latest } }]),
  }
}

type BsonType = 'string' | 'date' | 'bool' | 'int' | 'long' | 'double' | 'null'

interface FieldTypes {
  [name: string]: BsonType | readonly BsonType[] | { optional: FieldTypes }
}

/**
 * The condition that fields exist and have these types: a record that was damaged, or written by somebody else, does not
 * match. Unlike `$type`, and unlike plain equality, it does not look into arrays.
 */
export function hasTypes(required: FieldTypes, optional: FieldTypes = {}) {
  return {
    $jsonSchema: {
      required: Object.keys(required),
      properties: propertiesOf({ ...required, ...optional }),
    },
  }
}

function propertiesOf(types: FieldTypes): Record<string, object> {
  return Object.fromEntries(
    Object.entries(types).map(([name, type]) => [
      name,
      typeof type === 'object' && 'optional' in type
        ? { bsonType: 'object', properties: propertiesOf(type.optional) }
        : { bsonType: type },
    ]),
  )
}
