/** The kinds of which the schemas of the admin API are made. */
import * as z from 'zod'

const MAX_TEXT = 8_192

// Each kind that somebody sends says what it takes: that is the `expected` of a refusal.
export const TEXT = `a text of at most ${MAX_TEXT} characters, and not empty`
export const given = z
  .string(TEXT)
  .min(1, TEXT)
  .max(MAX_TEXT, TEXT)
  .refine((text) => text.isWellFormed() && !text.includes('\0'), TEXT)
export const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, `one of ${values.join(', ')}`)
export const flag = z.boolean('true or false')
export const dryRun = flag
  .default(false)
  .describe('Checks everything and changes nothing. The answer shows the result.')
const LIMIT = 'a decimal number from 1 to 1000'
export const limit = z
  .int(LIMIT)
  .min(1, LIMIT)
  .max(1000, LIMIT)
  .default(50)
  .describe('At most this many.')
const TIME = 'a time such as 2026-01-31T08:00:00Z'
export const givenTime = z
  .string(TIME)
  .refine(isTime, TIME)
  .meta({ format: 'date-time' })
  .transform((text) => new Date(text))

/** The 30th of February, which `Date` reads as the 2nd of March, is no time. */
function isTime(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?Z$/.test(text)) return false
  const time = new Date(text)
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(text.slice(0, 10))
}

export const text = z.string()
/** A handler answers a `Date`; JSON makes this of it. */
export const time = z
  .date()
  .transform((at) => at.toISOString())
  .pipe(z.string().meta({ format: 'date-time' }))
export const count = z.int().min(0)
/** JSON leaves `undefined` out. */
export const optional = <T extends z.ZodType>(kind: T, description = '') =>
  described(z.optional(kind), description)
export const list = <T extends z.ZodType>(kind: T, description = '') =>
  described(z.array(kind), description)
export const object = <S extends z.core.$ZodLooseShape>(description: string, shape: S) =>
  described(z.strictObject(shape), description)

function described<T extends z.ZodType>(kind: T, description: string): T {
  return description === '' ? kind : kind.describe(description)
}
