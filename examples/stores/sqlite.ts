/**
 * A store of one's own: SQLite, by `node:sqlite` (Node 22.5 and later). For one process on one machine.
 *
 * Each kind is a table, with a column for each field. Revisions are `_rev` and `_was`.
 */
import {
  ANY,
  checkQuery,
  keptText,
  storedJson,
  storedOf,
  textOf,
  type Change,
  type FieldType,
  type Kind,
  type Query,
  type RecordStore,
  type Stored,
  type Value,
} from '../../src/store/published.ts'

type Row = Record<string, unknown>
type Column = string | number | null

/** A `DatabaseSync` of `node:sqlite`. */
export interface Database {
  exec(text: string): unknown
  prepare(text: string): { all(...values: Column[]): unknown[] }
}

export function sqliteStore(db: Database): RecordStore {
  const all = (text: string, values: Column[] = []): Row[] =>
    db.prepare(text).all(...values) as Row[]

  function swapped(kind: Kind, change: Change): boolean {
    const { revision, next, becomes } = change
    const id = keptText(change.id)
    const where = revision === ANY ? 'id = ?' : 'id = ? AND _rev = ?'
    const which: Column[] = typeof revision === 'string' ? [id, revision] : [id]
    if (!next) {
      all(`DELETE FROM ${quoted(kind.name)} WHERE ${where}`, which)
      return all(`SELECT id FROM ${quoted(kind.name)} WHERE id = ?`, [id]).length === 0
    }
    const was = typeof revision === 'string' ? revision : null
    const set: [string, Column][] = [
      ['_rev', becomes],
      ['_was', was],
      ...Object.entries(kind.fields).map(([name, type]): [string, Column] => [
        name,
        kept(next[name], type),
      ]),
    ]
    if (kind.insertedAt !== undefined && revision === undefined)
      set.push([kind.insertedAt, Date.now()])
    const row = new Map([['id', id], ...set])
    const names = [...row.keys()].map(quoted)
    const values = [...row.values()]
    if (typeof revision === 'string') {
      const assigned = names.map((name) => `${name} = ?`).join(', ')
      const text = `UPDATE ${quoted(kind.name)} SET ${assigned} WHERE ${where} RETURNING id`
      return all(text, [...values, ...which]).length === 1
    }
    const taken =
      revision === ANY
        ? `ON CONFLICT (id) DO UPDATE SET ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`
        : 'ON CONFLICT DO NOTHING'
    const marks = names.map(() => '?').join(', ')
    const text = `INSERT INTO ${quoted(kind.name)} (${names.join(', ')}) VALUES (${marks}) ${taken} RETURNING id`
    return all(text, values).length === 1
  }

  return {
    purges: false,

    async start(kinds) {
      for (const kind of kinds) for (const text of definitionOf(kind)) db.exec(text)
    },

    now: async () => new Date(),

    async get(kind, ids) {
      const text = `SELECT * FROM ${quoted(kind.name)} WHERE id IN (SELECT value FROM json_each(?))`
      const found = new Map(
        all(text, [JSON.stringify(ids.map(keptText))]).map((row) => [row['id'], row]),
      )
      return ids.map((id) => {
        const row = found.get(keptText(id))
        return row && told(kind, row)
      })
    },

    async find(kind, query) {
      checkQuery(kind, query)
      const { where, order, values } = conditionsOf(query)
      const text = `SELECT * FROM ${quoted(kind.name)} WHERE ${where} ORDER BY ${order} LIMIT ?`
      return all(text, [...values, query.limit]).map((row) => told(kind, row))
    },

    swap: async (kind, changes) => changes.map((change) => swapped(kind, change)),
  }
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`

function* definitionOf({ name, fields, indexes, unique, purgedAt }: Kind): Generator<string> {
  const columns = [
    'id TEXT PRIMARY KEY',
    '_rev TEXT',
    '_was TEXT',
    ...Object.keys(fields).map(quoted),
  ]
  yield `CREATE TABLE IF NOT EXISTS ${quoted(name)} (${columns.join(', ')}) WITHOUT ROWID`
  const all = [...indexes, ...(purgedAt === undefined ? [] : [[purgedAt]])]
  for (const of of [...all.map((index) => [...index, 'id']), ...unique.map((field) => [field])]) {
    const isUnique = of.at(-1) === 'id' ? '' : 'UNIQUE'
    const index = quoted(`${name}_${of.join('_')}`)
    yield `CREATE ${isUnique} INDEX IF NOT EXISTS ${index} ON ${quoted(name)} (${of.map(quoted).join(', ')})`
  }
}

/** Times are milliseconds, JSON is text. */
function kept(value: Value | undefined, type?: FieldType): Column {
  if (value === undefined) return null
  if (value instanceof Date) return value.getTime()
  if (type === 'json' || typeof value === 'object') return JSON.stringify(value)
  if (typeof value === 'boolean') return Number(value)
  return typeof value === 'string' ? keptText(value) : value
}

/** What is of another type than its field is left as it is: `storedOf` then says that the record is damaged. */
function toldValue(type: FieldType, value: unknown): unknown {
  if (type === 'time' && typeof value === 'number') return new Date(value)
  if (type === 'boolean' && (value === 0 || value === 1)) return value === 1
  if (type === 'text' && typeof value === 'string') return textOf(value)
  if (type === 'json' && typeof value === 'string') return storedJson(value)
  return value
}

function told(kind: Kind, { id, _rev: revision, _was: was, ...row }: Row): Stored {
  const types = Object.entries(kind.fields)
  const fields = Object.fromEntries(types.map(([name, type]) => [name, toldValue(type, row[name])]))
  return storedOf(kind, textOf(String(id)), { revision, was, fields })
}

function conditionsOf({ equal = {}, by, from, below, after, isDescending }: Query) {
  const conditions = ['TRUE']
  const values: Column[] = []
  function must(text: string, ...given: Value[]) {
    conditions.push(text)
    values.push(...given.map((one) => kept(one)))
  }
  for (const [name, value] of Object.entries(equal)) {
    const wanted = [value].flat()
    must(`${quoted(name)} IN (${wanted.map(() => '?').join(', ')})`, ...wanted)
  }
  const [beyond, direction] = isDescending ? ['<', 'DESC'] : ['>', 'ASC']
  if (by === undefined) {
    if (after) must('id > ?', after.id)
    return { where: conditions.join(' AND '), order: 'id', values }
  }
  must(`${quoted(by)} IS NOT NULL`)
  if (from !== undefined) must(`${quoted(by)} >= ?`, from)
  if (below !== undefined) must(`${quoted(by)} < ?`, below)
  if (after) must(`(${quoted(by)}, id) ${beyond} (?, ?)`, after.value ?? '', after.id)
  const order = `${quoted(by)} ${direction}, id ${direction}`
  return { where: conditions.join(' AND '), order, values }
}
