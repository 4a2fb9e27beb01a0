/**
 * JSON Schema 2020-12, as much of it as the admin API needs.
 *
 * @module
 */

/** Longer texts are refused. */
export const MAX_TEXT = 8_192

export type Schema = { $ref: string } | TypedSchema

export interface TypedSchema {
  type: 'object' | 'array' | 'string' | 'integer' | 'boolean'
  description?: string
  format?: 'date-time'
  enum?: readonly string[]
  default?: string | number | boolean
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
}

export const text = (description?: string): Schema => ({ type: 'string', ...about(description) })
/** What somebody sends. */
export const given = (description?: string): Schema => ({
  type: 'string',
  minLength: 1,
  maxLength: MAX_TEXT,
  ...about(description),
})
export const time = (description?: string): Schema => ({
  type: 'string',
  format: 'date-time',
  ...about(description),
})
export const flag = (description?: string): Schema => ({ type: 'boolean', ...about(description) })
export const count = (description?: string): Schema => ({
  type: 'integer',
  minimum: 0,
  ...about(description),
})
export const one = (values: string[], description?: string): Schema => ({
  type: 'string',
  enum: values,
  ...about(description),
})
export const list = (items: Schema, description?: string): Schema => ({
  type: 'array',
  items,
  ...about(description),
})

const about = (description: string | undefined) => description !== undefined && { description }

/** A `?` behind the name of a property says that it may be missing. */
export function object(description: string, properties: Record<string, Schema>): TypedSchema {
  const names = Object.entries(properties)
  return {
    type: 'object',
    description,
    properties: Object.fromEntries(names.map(([name, schema]) => [name.replace('?', ''), schema])),
    required: names.map(([name]) => name).filter((name) => !name.endsWith('?')),
    additionalProperties: false,
  }
}

export const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })

/** What several queries take. */
export const LIMIT = {
  type: 'integer',
  minimum: 1,
  maximum: 1000,
  default: 50,
  description: 'At most so many.',
} as const

export const DRY_RUN = {
  type: 'boolean',
  default: false,
  description: 'Everything is checked, and nothing applied; the answer is what would be.',
} as const
