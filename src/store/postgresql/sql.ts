/** The SQL statements that keep records in PostgreSQL, and the meaning of their rows. */
import { isOfAny, keptText, storedJson, storedOf, textOf } from '../record-checks.ts'
import type { Change, FieldType, Kind, Query, Stored, Value } from '../record-store.ts'

const TYPES: Record<FieldType, string> = {
  text: 'text',
  number: 'double precision',
  boolean: 'boolean',
  time: 'timestamptz(3)',
  json: 'text',
}

/** Texts are in the order of their bytes. */
const columnOf = (type: FieldType) => (type === 'text' ? 'text COLLATE "C"' : TYPES[type])

export const nameOf = (name: string) => `"${name.replaceAll('"', '""')}"`

/** An arbitrary number. */
const LOCK = 718_281_828

export function indexesOf(kind: Kind, prefix: string) {
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

/**
 * Creates a table and its indexes, if they are missing. It does not lock existing ones: a backup may be reading them. Processes take turns,
 * because two that create the same name at once would fail.
 */
export function definitionOf(kind: Kind, prefix: string): string {
  const table = nameOf(prefix + kind.name)
  const statements = [
    `PERFORM pg_advisory_xact_lock(${LOCK})`,
    `CREATE TABLE IF NOT EXISTS ${table} (id text COLLATE "C" PRIMARY KEY, _rev text, _was text) WITH (fillfactor = 80)`,
    ...Object.entries(kind.fields).map(
      ([name, type]) =>
        `IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = to_regclass('${table}') AND attname = '${name}' AND NOT attisdropped)
         THEN ALTER TABLE ${table} ADD COLUMN ${nameOf(name)} ${columnOf(type)}; END IF`,
    ),
    ...indexesOf(kind, prefix).map(
      ({ name, isUnique, keys }) =>
        `IF to_regclass('${nameOf(name)}') IS NULL
         THEN CREATE ${isUnique ? 'UNIQUE ' : ''}INDEX ${nameOf(name)} ON ${table} (${keys.map(nameOf).join(', ')}); END IF`,
    ),
  ]
  return `DO $do$ BEGIN ${statements.join('; ')}; END $do$`
}

export type Row = { id: string } & Record<string, unknown>

export const isRow = (row: unknown): row is Row => typeof row === 'object' && row !== null

/** The columns of the rows from `rowsOf`. `read` is the revision that was read, or null for any revision. */
function givenOf({ fields }: Kind): string {
  const columns = Object.entries(fields).map(([name, type]) => `${nameOf(name)} ${TYPES[type]}`)
  return ['id text', 'read text', '_rev text', '_was text', ...columns].join(', ')
}

function rowsOf({ fields }: Kind, changes: readonly Change[]): string {
  return JSON.stringify(
    changes.map(({ id, revision, next = {}, becomes }) => {
      const read = typeof revision === 'string' ? revision : undefined
      const row: Row = { id: keptText(id), read, _rev: becomes, _was: read }
      for (const [name, type] of Object.entries(fields)) {
        const value = next[name]
        if (value !== undefined) row[name] = type === 'json' ? JSON.stringify(value) : kept(value)
      }
      return row
    }),
  )
}

const kept = (value: Value) => {
  if (typeof value === 'string') return keptText(value)
  return value instanceof Date ? value.toISOString() : value
}

export function storedFrom(kind: Kind, { id, _rev: revision, _was: was, ...row }: Row): Stored {
  const fields: Record<string, unknown> = {}
  for (const [name, type] of Object.entries(kind.fields)) {
    const value = row[name]
    const isText = typeof value === 'string'
    if (type === 'json') fields[name] = isText ? storedJson(value) : value
    else fields[name] = isText && type === 'text' ? textOf(value) : value
  }
  return storedOf(kind, textOf(id), { revision, was, fields })
}

/** Looks up each value of a list separately, so that an index returns the rows in its order. */
export function selectionOf(kind: Kind, table: string, query: Query) {
  const { equal = {}, by, from, below, after, isDescending, limit } = query
  const values: unknown[] = []
  const given = (value: unknown, type: string) => `$${values.push(value)}::${type}`
  const typeOfField = (name: string) => TYPES[kind.fields[name] ?? 'text']
  const lists: string[] = []
  const conditions = Object.entries(equal).map(([name, value]) => {
    const list = [...new Set([value].flat().map(kept))]
    if (list.length === 1) return `${nameOf(name)} = ${given(list[0], typeOfField(name))}`
    // No field name contains a blank, so this name is free.
    const any = nameOf(`any ${name}`)
    lists.push(`unnest(${given(list, `${typeOfField(name)}[]`)}) AS ${any}`)
    return `${nameOf(name)} = ${any}`
  })
  let order = conditions.length > 0 && !after ? '' : 'ORDER BY id'
  if (by === undefined && after) conditions.push(`id > ${given(keptText(after.id), 'text')}`)
  if (by !== undefined) {
    const [name, type] = [nameOf(by), typeOfField(by)]
    conditions.push(`${name} IS NOT NULL`)
    if (from !== undefined) conditions.push(`${name} >= ${given(kept(from), type)}`)
    if (below !== undefined) conditions.push(`${name} < ${given(kept(below), type)}`)
    if (after) {
      const place = `(${given(kept(after.value ?? ''), type)}, ${given(keptText(after.id), 'text')})`
      conditions.push(`(${name}, id) ${isDescending ? '<' : '>'} ${place}`)
    }
    const direction = isDescending ? 'DESC' : 'ASC'
    order = `ORDER BY ${name} ${direction}, id ${direction}`
  }
  const where = conditions.length > 0 ? `WHERE ${conditions.join(' AND ')}` : ''
  const most = `${order} LIMIT ${given(limit, 'bigint')}`
  const ofOne = `SELECT * FROM ${table} ${where} ${most}`
  const ofAll = `SELECT found.* FROM ${[...lists, `LATERAL (${ofOne}) found`].join(', ')} ${most}`
  return { text: lists.length > 0 ? ofAll : ofOne, values }
}

type Sort = 'insert' | 'overwrite' | 'update' | 'remove'

function sortOf(change: Change): Sort {
  if (!change.next) return 'remove'
  if (change.revision === undefined) return 'insert'
  return isOfAny(change) ? 'overwrite' : 'update'
}

/** A statement for each sort of change, and its input. Each returns the ids that were done, and locks rows in the order of their ids. */
export function swapsOf(kind: Kind, table: string, changes: readonly Change[]) {
  return Object.entries(statementsOf(kind, table)).flatMap(([sort, text]) => {
    const chosen = changes.filter((change) => sortOf(change) === sort)
    return chosen.length > 0 ? [{ text, given: rowsOf(kind, chosen) }] : []
  })
}

function statementsOf(kind: Kind, table: string): Record<Sort, string> {
  const names = Object.keys(kind.fields).map(nameOf)
  const given = `jsonb_to_recordset($1::jsonb) AS g (${givenOf(kind)})`
  const insertedAt = kind.insertedAt === undefined ? undefined : nameOf(kind.insertedAt)
  const first = names.map((name) => (name === insertedAt ? 'clock_timestamp()' : `g.${name}`))
  const columns = ['id', '_rev', '_was', ...names]
  const into = `INSERT INTO ${table} (${columns.join(', ')})`
  const set = (from: string) =>
    [...names, '_rev', '_was'].map((name) => `${name} = ${from}.${name}`).join(', ')
  const lockRead = `WITH locked AS (
    SELECT t.id AS locked_id, g.* FROM ${table} t
    JOIN ${given} ON g.id = t.id AND (g.read IS NULL OR t._rev = g.read)
    ORDER BY t.id FOR UPDATE OF t
  )`
  return {
    insert: `${into}
      SELECT g.id, g._rev, NULL, ${first.join(', ')} FROM ${given} ORDER BY g.id COLLATE "C"
      ON CONFLICT DO NOTHING RETURNING id`,
    overwrite: `${into}
      SELECT ${columns.map((name) => `g.${name}`).join(', ')} FROM ${given} ORDER BY g.id COLLATE "C"
      ON CONFLICT (id) DO UPDATE SET ${set('EXCLUDED')} RETURNING id`,
    update: `${lockRead}
      UPDATE ${table} t SET ${set('locked')} FROM locked WHERE t.id = locked.locked_id RETURNING t.id`,
    // A row that still exists after this has another revision.
    remove: `${lockRead},
      gone AS (DELETE FROM ${table} t USING locked WHERE t.id = locked.locked_id RETURNING t.id)
      SELECT g.id FROM ${given}
      WHERE g.id IN (SELECT id FROM gone) OR NOT EXISTS (SELECT FROM ${table} t WHERE t.id = g.id)`,
  }
}
