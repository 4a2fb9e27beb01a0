import { operations, type Operation } from '../../src/admin/operations.ts'
import type { Schema } from '../../src/admin/schema-kinds.ts'
import { schemas } from '../../src/admin/schemas.ts'

/** TypeScript for the schemas and operations of the admin API. */
export function apiTypes(): string {
  const interfaces = Object.entries(schemas).map(
    ([name, schema]) =>
      `${comment(schema.description)}export interface ${name} ${typeOf(schema)}\n`,
  )
  const methods = Object.entries<Operation>(operations).map(
    ([name, { summary, query = {}, body, answer }]) => {
      const wanted = Object.entries(query).map(
        ([key, { isRequired, isList, ...schema }]) =>
          `${comment(schema.description)}${key}${isRequired ? '' : '?'}: ${isList ? `${grouped(typeOf(schema))}[]` : typeOf(schema)}`,
      )
      return `${comment(summary)}${name}: { query: { ${wanted.join('\n')} }, body: ${body ?? 'undefined'}, answer: ${answer} }`
    },
  )
  return [
    '// Made by `npm run docs` out of src/admin/schemas.ts and src/admin/document.ts; not to be edited.\n',
    ...interfaces,
    '/** What each operation takes and answers. */',
    `export interface Operations {\n${methods.join('\n')}\n}\n`,
  ].join('\n')
}

function typeOf(schema: Schema): string {
  if ('$ref' in schema) return schema.$ref.replace(/^.*\//, '')
  const { type, items, properties, required = [] } = schema
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (type === 'array') return `${grouped(typeOf(items ?? { type: 'string' }))}[]`
  if (type === 'integer') return 'number'
  if (type !== 'object') return type
  if (!properties) return 'Record<string, unknown>'
  const members = Object.entries(properties).map(([name, property]) => {
    const about = 'description' in property ? comment(property.description) : ''
    return `${about}${name}${required.includes(name) ? '' : '?'}: ${typeOf(property)}`
  })
  return `{\n${members.join('\n')}\n}`
}

function grouped(type: string): string {
  return type.includes('|') ? `(${type})` : type
}

function comment(text: string | undefined): string {
  return text === undefined ? '' : `/** ${text} */\n`
}
