/** The kinds of values in the schemas of the admin API. */
import * as z from 'zod'
import { snakeCase } from '../store/kind.ts'

const MAX_TEXT = 8_192

// Each kind that a client sends says what it accepts: that is the `expected` of a refusal.
export const TEXT = `a text of at most ${MAX_TEXT} characters, and not empty`
export const given = z
  .string(TEXT)
  .min(1, TEXT)
  .max(MAX_TEXT, TEXT)
  .refine((text) => text.isWellFormed() && !text.includes('\0'), TEXT)
export const oneOf = <const T extends readonly string[]>(values: T) =>
  z.enum(values, `one of ${values.join(', ')}`)
export const flag = z.boolean('true or false')
const LIMIT = 'a decimal number from 1 to 1000'
export const limit = z
  .int(LIMIT)
  .min(1, LIMIT)
  .max(1000, LIMIT)
  .default(50)
  .describe('At most this many.')
// A time without seconds is accepted too.
const TIMES = z.iso.datetime().or(z.iso.datetime({ precision: -1 }))
const TIME = 'a time such as 2026-01-31T08:00:00Z'
export const givenTime = z
  .string(TIME)
  .refine((text) => TIMES.safeParse(text).success, TIME)
  .meta({ format: 'date-time' })
  .transform((text) => new Date(text))

export const text = z.string()
/** A handler answers a `Date`; JSON turns it into this text. */
export const time = z
  .date()
  .transform((at) => at.toISOString())
  .pipe(z.string().meta({ format: 'date-time' }))
export const count = z.int().min(0)
/** JSON leaves `undefined` out. */
export const optional = <T extends z.ZodType>(kind: T, description?: string) =>
  description === undefined ? z.optional(kind) : z.optional(kind).describe(description)
export const list = <T extends z.ZodType>(kind: T, description: string) =>
  z.array(kind).describe(description)
export const object = <S extends z.core.$ZodLooseShape>(description: string, shape: S) =>
  z.strictObject(shape).describe(description)

type CamelCase<Name extends string> = Name extends `${infer Start}_${infer Rest}`
  ? `${Start}${Capitalize<CamelCase<Rest>>}`
  : Name

/** Only the fields that the schema describes. Names are in camelCase in the code, and in snake_case on the wire. */
export function wireOf<S extends z.ZodObject>(
  { shape }: S,
  record: { [N in keyof z.input<S> as CamelCase<N & string>]: z.input<S>[N] },
): z.input<S> {
  const values = new Map(Object.entries(record).map(([name, value]) => [snakeCase(name), value]))
  const told = Object.keys(shape).map((name) => [name, values.get(name)])
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the record has them by their other names
  return Object.fromEntries(told) as z.input<S>
}
