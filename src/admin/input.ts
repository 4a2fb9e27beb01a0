import type { Context } from 'koa'
import type { SettingProblem } from './api-types.ts'
import type { Operation } from './operations.ts'
import { MAX_TEXT, type TypedSchema } from './schema-kinds.ts'
import { schemas } from './schemas.ts'
import { readBody, type BodyRefusal } from '../http/body.ts'

type Values = Record<string, unknown>

/** Reads the query as the operation describes it; what it does not name is refused, so that a misspelled `dry_run` changes nothing. */
export function readQuery(ctx: Context, { query = {} }: Operation): Values | SettingProblem[] {
  const problems: SettingProblem[] = []
  const values: Values = {}
  const given = new URLSearchParams(ctx.querystring)
  for (const key of new Set(given.keys())) {
    const schema = Object.hasOwn(query, key) ? query[key] : undefined
    const texts = given.getAll(key)
    const [first = ''] = texts
    if (!schema) problems.push({ key, expected: 'the name of a parameter', got: 'another name' })
    else if (!schema.isList && texts.length > 1) {
      problems.push({ key, expected: 'one value', got: 'several' })
    } else if (!texts.every((text) => takesText(schema, text))) {
      problems.push(problemOf(key, schema, 'something else'))
    } else values[key] = schema.isList ? texts : valueOf(schema, first)
  }
  for (const [key, { isRequired, ...schema }] of Object.entries(query)) {
    if (isRequired && !given.has(key)) problems.push(problemOf(key, schema, 'nothing'))
    if (!(key in values) && schema.default !== undefined) values[key] = schema.default
  }
  return problems.length > 0 ? problems : values
}

function takesText(schema: TypedSchema, text: string): boolean {
  const { type, minimum = 0, maximum = Number.MAX_SAFE_INTEGER, format } = schema
  if (schema.enum) return schema.enum.includes(text)
  if (type === 'boolean') return text === 'true' || text === 'false'
  if (type === 'integer') {
    return /^\d{1,9}$/.test(text) && Number(text) >= minimum && Number(text) <= maximum
  }
  if (format === 'date-time') return isTime(text)
  return isText(text)
}

function valueOf({ type }: TypedSchema, text: string): unknown {
  if (type === 'boolean') return text === 'true'
  return type === 'integer' ? Number(text) : text
}

function isTime(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?Z$/.test(text)) return false
  const time = new Date(text)
  // The 30th of February is read as the 2nd of March.
  return !Number.isNaN(time.getTime()) && time.toISOString().startsWith(text.slice(0, 10))
}

function isText(value: unknown): boolean {
  return (
    typeof value === 'string' &&
    value !== '' &&
    value.length <= MAX_TEXT &&
    value.isWellFormed() &&
    !value.includes('\0')
  )
}

/** Reads the body as one JSON object. */
export async function readObject(ctx: Context): Promise<Values | BodyRefusal> {
  const body = await readBody(ctx, 'application/json')
  if (typeof body === 'string') return body
  const value = 'text' in body ? parseJson(body.text) : body.parsed
  return isObject(value) ? value : 'bad_request'
}

/** Judges a body by its schema: texts and flags, no others, and none missing. */
export function problemsOf(body: Values, name: keyof typeof schemas): SettingProblem[] {
  const { properties = {}, required = [] }: TypedSchema = schemas[name]
  const problems: SettingProblem[] = []
  for (const [key, value] of Object.entries(body)) {
    const schema = Object.hasOwn(properties, key) ? properties[key] : undefined
    if (!schema || '$ref' in schema) {
      problems.push({ key, expected: 'the name of a field', got: 'another name' })
    } else if (schema.type === 'boolean' ? typeof value !== 'boolean' : !isText(value)) {
      problems.push(problemOf(key, schema, 'something else'))
    }
  }
  for (const key of required) {
    const schema = properties[key]
    if (!(key in body) && schema && 'type' in schema)
      problems.push(problemOf(key, schema, 'nothing'))
  }
  return problems
}

function problemOf(key: string, schema: TypedSchema, got: string): SettingProblem {
  return { key, expected: expectedBy(schema), got }
}

function expectedBy({ type, format, minimum, maximum, ...schema }: TypedSchema): string {
  if (schema.enum) return `one of ${schema.enum.join(', ')}`
  if (type === 'boolean') return 'true or false'
  if (type === 'integer') return `a decimal number from ${minimum} to ${maximum}`
  if (format === 'date-time') return 'a time such as 2026-01-31T08:00:00Z'
  return `a text of at most ${MAX_TEXT} characters, and not empty`
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isObject(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
