import type { FieldType, Kind } from '../record-store.ts'

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

/** The indexes of a kind by their names, and the fields that they begin with. */
function indexesOf(kind: Kind, prefix: string) {
  const single = kind.purgedAt === undefined ? [] : [[kind.purgedAt]]
  const named = (fields: readonly string[], isUnique: boolean) => ({
    name: `${prefix}${kind.name}_${fields.join('_')}`,
    isUnique,
    keys: isUnique ? fields : [...fields, 'id'],
  })
  return [
    ...[...kind.indexes, ...single].map((fields) => named(fields, false)),
    ...kind.unique.map((field) => named([field], true)),
  ]
}

export const indexNamesOf = (kind: Kind, prefix: string) =>
  indexesOf(kind, prefix).map(({ name }) => name)

/**
 * The statement that makes a table and its indexes, as far as they are missing. What is there is not locked: a backup may be reading it. One
 * process after the other: two that create the same name at once would fail.
 */
export function definitionOf(kind: Kind, prefix: string): string {
  const table = nameOf(prefix + kind.name)
  const statements = [
    `PERFORM pg_advisory_xact_lock(${LOCK})`,
    `CREATE TABLE IF NOT EXISTS ${table} (id text COLLATE "C" PRIMARY KEY, _rev text, _was text) WITH (fillfactor = 80)`,
    ...Object.entries(kind.fields).map(
      ([name, type]) =>
        `IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('${table}') AND attname = '${name}' AND NOT attisdropped)
         THEN ALTER TABLE ${table} ADD COLUMN ${nameOf(name)} ${TYPES[type]}; END IF`,
    ),
    ...indexesOf(kind, prefix).map(
      ({ name, isUnique, keys }) =>
        `IF to_regclass('${nameOf(name)}') IS NULL
         THEN CREATE ${isUnique ? 'UNIQUE ' : ''}INDEX ${nameOf(name)} ON ${table} (${keys.map(nameOf).join(', ')}); END IF`,
    ),
  ]
  return `DO $do$ BEGIN ${statements.join('; ')}; END $do$`
}
