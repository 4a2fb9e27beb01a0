import type { FieldType, Kind } from '../../ports/record-store.ts'

const TYPES: Record<FieldType, string> = {
  text: 'text COLLATE "C"',
  number: 'double precision',
  boolean: 'boolean',
  time: 'timestamptz(3)',
  json: 'text',
}

/** The types of parameters and of given rows. */
export const typeOf = (type: FieldType) => TYPES[type].replace(' COLLATE "C"', '')

export const nameOf = (name: string) => `"${name.replaceAll('"', '""')}"`

/** Any number: all that start take turns by it. */
const LOCK = 718_281_828

/**
 * The statement that makes a table and its indexes, as far as they are missing. One process after the other: two that create the same
 * name at once would fail.
 */
export function definitionOf(kind: Kind, prefix: string): string {
  const table = nameOf(prefix + kind.name)
  const columns = Object.entries(kind.fields).map(
    ([name, type]) => `${nameOf(name)} ${TYPES[type]}`,
  )
  const index = (fields: readonly string[], isUnique = false) => {
    const name = nameOf(`${prefix}${kind.name}_${fields.join('_')}`)
    const keys = [...fields, ...(isUnique ? [] : ['id'])].map(nameOf).join(', ')
    return `CREATE ${isUnique ? 'UNIQUE ' : ''}INDEX IF NOT EXISTS ${name} ON ${table} (${keys})`
  }
  const statements = [
    `PERFORM pg_advisory_xact_lock(${LOCK})`,
    `CREATE TABLE IF NOT EXISTS ${table} (id text COLLATE "C" PRIMARY KEY, _rev text, _was text) WITH (fillfactor = 80)`,
    ...columns.map((column) => `ALTER TABLE ${table} ADD COLUMN IF NOT EXISTS ${column}`),
    ...kind.indexes.map((fields) => index(fields)),
    ...kind.unique.map((field) => index([field], true)),
    ...(kind.purgedAt === undefined ? [] : [index([kind.purgedAt])]),
  ]
  return `DO $do$ BEGIN ${statements.join('; ')}; END $do$`
}
