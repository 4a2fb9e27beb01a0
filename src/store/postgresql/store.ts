import {
  ANY,
  checkQuery,
  type Change,
  type Kind,
  type RecordStore,
  type Stored,
} from '../record-store.ts'
import { keptText } from '../text.ts'
import { givenOf, isRow, type Row, rowsOf, selectionOf, toldOf } from './rows.ts'
import { definitionOf, indexNamesOf, nameOf } from './tables.ts'
import { answeredBy } from './unavailable.ts'

/** The `Pool` of `pg`, or PGlite. */
export interface PostgresPool {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

/** With it the longest name of an index has no more than the 63 bytes that PostgreSQL keeps of a name. */
const PREFIX = /^[a-z0-9_]{0,16}$/

/** How often a statement is sent that the database ended for another one: it has done nothing then. */
const MOST_TURNS = 10

/**
 * Keeps each kind in a table, with a column for each field. Each verb is one statement with autocommit, so that a pooler in transaction
 * mode may stand before the database.
 */
export function postgresStore(
  pool: PostgresPool,
  { prefix = '' }: { prefix?: string | undefined } = {},
): RecordStore {
  if (typeof prefix !== 'string' || !PREFIX.test(prefix))
    throw new TypeError('prefix must be at most 16 lower-case letters, digits and "_"')
  const ask = async (text: string, ...values: unknown[]): Promise<Row[]> => {
    const { rows } = await answeredBy(() => pool.query(text, values), MOST_TURNS)
    return rows.filter(isRow)
  }
  const table = (kind: Kind) => nameOf(prefix + kind.name)

  return {
    purges: false,

    async start(kinds) {
      for (const kind of kinds) await ask(definitionOf(kind, prefix))
    },

    async inspect(kinds) {
      const rows = await ask(
        'SELECT indexname AS id FROM pg_indexes WHERE schemaname = ANY (current_schemas(false))',
      )
      const found = new Set(rows.map(({ id }) => id))
      return kinds.flatMap((kind) => indexNamesOf(kind, prefix)).filter((name) => !found.has(name))
    },

    async isDurable() {
      const [row] = await ask('SHOW synchronous_commit')
      return row?.['synchronous_commit'] !== 'off'
    },

    async now() {
      const [row] = await ask('SELECT clock_timestamp()::timestamptz(3) AS now')
      if (row?.['now'] instanceof Date) return row['now']
      throw new Error('PostgreSQL did not tell its time')
    },

    async get(kind, ids) {
      if (ids.length === 0) return []
      const wanted = [...new Set(ids.map(keptText))]
      const rows = await ask(`SELECT * FROM ${table(kind)} WHERE id = ANY($1::text[])`, wanted)
      const found = new Map(rows.map((row) => [row.id, toldOf(kind, row)]))
      return ids.map((id): Stored | undefined => found.get(keptText(id)))
    },

    async find(kind, query) {
      checkQuery(kind, query)
      const { text, values } = selectionOf(kind, table(kind), query)
      const rows = await ask(text, ...values)
      return rows.map((row) => toldOf(kind, row))
    },

    async swap(kind, changes) {
      const done = new Set<string>()
      const statements = statementsOf(kind, table(kind))
      const write = async (sort: Sort) => {
        const chosen = changes.filter((change) => sortOf(change) === sort)
        if (chosen.length === 0) return
        for (const { id } of await ask(statements[sort], rowsOf(kind, chosen))) done.add(id)
      }
      await Promise.all((['insert', 'overwrite', 'update', 'remove'] as const).map(write))
      return changes.map(({ id }) => done.has(keptText(id)))
    },
  }
}

type Sort = 'insert' | 'overwrite' | 'update' | 'remove'

function sortOf({ revision, next }: Change): Sort {
  if (!next) return 'remove'
  if (revision === undefined) return 'insert'
  return revision === ANY ? 'overwrite' : 'update'
}

/** Each answers the ids that were done. Rows are locked in the order of their ids. */
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
    // What is left has another revision.
    remove: `${lockRead},
      gone AS (DELETE FROM ${table} t USING locked WHERE t.id = locked.locked_id RETURNING t.id)
      SELECT g.id FROM ${given}
      WHERE g.id IN (SELECT id FROM gone) OR NOT EXISTS (SELECT FROM ${table} t WHERE t.id = g.id)`,
  }
}
