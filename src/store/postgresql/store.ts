/** Keeps records in PostgreSQL. It knows kinds and their fields, and never what a record means. */
import { AccountFlowsError } from '../../errors.ts'
import { checkQuery, keptText } from '../record-checks.ts'
import type { Kind, RecordStore } from '../record-store.ts'
import { definitionOf, indexesOf, isRow, nameOf, selectionOf, storedFrom, swapsOf } from './sql.ts'

/** The `Pool` of `pg`. */
export interface PostgresPool {
  query(text: string, values?: unknown[]): Promise<{ rows: unknown[] }>
}

/** With this prefix, the longest index name fits into the 63 bytes that PostgreSQL keeps of a name. */
const PREFIX = /^[a-z0-9_]{0,16}$/

/** How often a statement is sent that the database ended in favour of another one. Such a statement has done nothing. */
const MAX_TURNS = 10

/**
 * Keeps each kind in a table, with a column for each field. Each verb is one statement with autocommit, so a pooler in transaction mode may
 * stand before the database.
 */
export function postgresStore(
  pool: PostgresPool,
  { prefix = '' }: { prefix?: string | undefined } = {},
): RecordStore {
  if (typeof prefix !== 'string' || !PREFIX.test(prefix))
    throw new TypeError('prefix must be at most 16 lower-case letters, digits and "_"')
  const ask = async (text: string, ...values: unknown[]) => {
    const { rows } = await answeredBy(() => pool.query(text, values), MAX_TURNS)
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
      const names = kinds.flatMap((kind) => indexesOf(kind, prefix)).map(({ name }) => name)
      return names.filter((name) => !found.has(name))
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
      const wanted = ids.map(keptText)
      const rows = await ask(`SELECT * FROM ${table(kind)} WHERE id = ANY($1::text[])`, wanted)
      const found = new Map(rows.map((row) => [row.id, storedFrom(kind, row)]))
      return wanted.map((id) => found.get(id))
    },

    async find(kind, query) {
      checkQuery(kind, query)
      const { text, values } = selectionOf(kind, table(kind), query)
      const rows = await ask(text, ...values)
      return rows.map((row) => storedFrom(kind, row))
    },

    async swap(kind, changes) {
      const swaps = swapsOf(kind, table(kind), changes)
      const rows = await Promise.all(swaps.map(({ text, given }) => ask(text, given)))
      const done = new Set(rows.flat().map(({ id }) => id))
      return changes.map(({ id }) => done.has(keptText(id)))
    },
  }
}

const SQLSTATE = /^(?:\d[\dA-Z]|F0|HV|P0|XX)[\dA-Z]{3}$/
/** A failed connection, missing resources, an operator's intervention, a system error, a read-only standby. */
const UNAVAILABLE = /^(?:08|53|57|58|25006)/
/** A deadlock, or two transactions that cannot be put in an order. */
const ENDED_FOR_ANOTHER = new Set(['40P01', '40001'])

/** @throws AccountFlowsError `ERR_STORE_UNAVAILABLE` if the database cannot be reached; every other error as it is. */
async function answeredBy<T>(ask: () => Promise<T>, turns: number): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    const state = stateOf(error)
    if (turns > 1 && state !== undefined && ENDED_FOR_ANOTHER.has(state))
      return answeredBy(ask, turns - 1)
    if (state !== undefined && !UNAVAILABLE.test(state)) throw error
    // The message is left out: it contains the address of the database.
    const message = 'PostgreSQL cannot be reached, or does not answer in time'
    throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', message, { cause: error })
  }
}

/** The SQLSTATE of a database error. `undefined`: the error has none, or the database was not reached. */
function stateOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : undefined
  return typeof code === 'string' && SQLSTATE.test(code) ? code : undefined
}
