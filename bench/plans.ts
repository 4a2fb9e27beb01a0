/** How the databases find what the flows look for, beside many records of each kind. Each query of the domain is told with its plan. */
import type { Db, Document } from 'mongodb'
import {
  memoryStore,
  memoryUsers,
  mongoStore,
  postgresStore,
  type PostgresPool,
} from '../src/index.ts'
import type { Fields, FieldType, Kind, Query, RecordStore, Value } from '../src/store/published.ts'
import { ALL_KINDS } from '../src/store/index.ts'
import { filterOf, sortOf } from '../src/store/mongodb/store.ts'
import { selectionOf } from '../src/store/postgresql/sql.ts'
import { freshDatabase } from '../test/support/mongod.ts'
import { freshPostgresql } from '../test/support/postgresql.ts'
import { storeCalls } from '../test/store/store-calls.ts'

/** Each account, grant or user has so many. */
const OF_ONE = 10
const AT_ONCE = 2_000
const YEAR_MS = 365 * 24 * 3_600_000
/** Half of all times are before it. */
const NOW = new Date()

interface Plan {
  /** The indexes that are read; none: all is looked through. */
  indexes: string[]
  examined: number
  found: number
  ms: number
  /** What is found is put in order afterwards. */
  isSorted: boolean
}

interface Database {
  store: RecordStore
  plan(kind: Kind, query: Query): Promise<Plan>
  clear(kind: Kind): Promise<unknown>
  drop(): Promise<void>
}

export async function showPlans({ isShort }: { isShort: boolean }): Promise<void> {
  const count = isShort ? 20_000 : 1_000_000
  const queries = await queriesOfTheDomain()
  for (const [name, start] of Object.entries({ MongoDB: onMongo, PostgreSQL: onPostgresql })) {
    const database = await start()
    console.log(`\n${name}, ${count} records of each kind`)
    for (const kind of ALL_KINDS) {
      const asked = queries.filter(([of]) => of === kind)
      if (asked.length > 0) await fill(database.store, kind, count)
      for (const [, query] of asked) {
        const amid = amidst(kind, query, count)
        console.log(`${kind.name}: ${lineOf(amid, await database.plan(kind, amid))}`)
      }
      if (asked.length > 0) await database.clear(kind)
    }
    await database.drop()
  }
}

/** All queries of the domain with their kinds; of those that differ in values alone, one. */
async function queriesOfTheDomain(): Promise<[Kind, Query][]> {
  const seen = new Map<string, [Kind, Query]>()
  const store = memoryStore()
  const watched: RecordStore = {
    ...store,
    find(kind, query) {
      const { equal = {}, by, from, below, after, isDescending } = query
      const isList = Object.entries(equal).map(([name, value]) => [name, Array.isArray(value)])
      const bounds = [from, below, after].map((bound) => bound !== undefined)
      seen.set(JSON.stringify([kind.name, isList, by, bounds, isDescending]), [kind, query])
      return store.find(kind, query)
    },
  }
  const { add: _add, ...users } = memoryUsers()
  for (const [name, call] of storeCalls(watched, users))
    if (!name.startsWith('users.')) await call()
  // Where the database does not purge by itself.
  for (const kind of ALL_KINDS)
    if (kind.purgedAt !== undefined)
      seen.set(`purge ${kind.name}`, [kind, { by: kind.purgedAt, below: NOW, limit: 500 }])
  return [...seen.values()]
}

/** The same query for values that records have, in the middle of all. */
function amidst(kind: Kind, { equal = {}, from, below, after, ...query }: Query, count: number) {
  const middle = (name: string): Value =>
    kind.fields[name] === 'time' ? NOW : `${name}-${Math.floor(count / OF_ONE / 2)}`
  const named = Object.entries(equal).map(([name, value]) => [
    name,
    isState(name) ? value : middle(name),
  ])
  return {
    ...query,
    equal: Object.fromEntries(named) as NonNullable<Query['equal']>,
    ...(from !== undefined && { from: NOW }),
    ...(below !== undefined && { below: NOW }),
    ...(after && { after: { ...(query.by !== undefined && { value: NOW }), id: 'id-5' } }),
  }
}

/** The fields of which there are few values. */
const isState = (name: string) => name === 'state' || name === 'type'

const STATES = ['requested', 'resolved', 'superseded', 'dead', 'waiting', 'sessions_ended']

async function fill({ start, swap }: RecordStore, kind: Kind, count: number) {
  await start([kind])
  // As the times are told, and not as they come in.
  const { insertedAt: _, ...timed } = kind
  for (let first = 0; first < count; first += AT_ONCE) {
    const swaps = Array.from({ length: AT_ONCE }, (_none, index) => ({
      id: `id-${first + index}`,
      revision: undefined,
      next: madeUp(kind, first + index, count),
      becomes: 'new',
    }))
    await swap(timed, swaps)
  }
}

/** The fields of the n-th record. */
function madeUp(kind: Kind, n: number, count: number): Fields {
  const value = (name: string, type: FieldType): Value => {
    if (isState(name)) return STATES[n % STATES.length] ?? ''
    const ofOne = kind.unique.includes(name) ? n : n % (count / OF_ONE)
    // Nothing is purged meanwhile.
    const from = name === kind.purgedAt ? YEAR_MS : -count * 500
    const time = new Date(NOW.getTime() + from + n * 1000)
    return { text: `${name}-${ofOne}`, time, number: 1, boolean: false, json: {} }[type]
  }
  const fields = Object.entries(kind.fields).map(([name, type]) => [name, value(name, type)])
  return Object.fromEntries(fields)
}

async function onMongo(): Promise<Database> {
  const { db, drop } = await freshDatabase()
  return {
    store: mongoStore(db),
    plan: (kind, query) => planOnMongo(db, kind, query),
    clear: (kind) => db.collection(kind.name).drop(),
    drop,
  }
}

async function planOnMongo(db: Db, kind: Kind, query: Query): Promise<Plan> {
  const filter = { $and: [{ _id: { $type: 'string' as const } }, filterOf(query)] }
  const options = { limit: query.limit, sort: sortOf(query) }
  const cursor = db.collection<Document & { _id: string }>(kind.name).find(filter, options)
  const { executionStats: stats, queryPlanner: planner } = await cursor.explain('executionStats')
  const plan = JSON.stringify(planner.winningPlan)
  return {
    indexes: [...plan.matchAll(/"indexName":"([^"]+)"/g)].map(([, name = '']) => name),
    examined: Math.max(stats.totalKeysExamined, stats.totalDocsExamined),
    found: stats.nReturned,
    ms: stats.executionTimeMillis,
    isSorted: plan.includes('"stage":"SORT"'),
  }
}

async function onPostgresql(): Promise<Database> {
  const { pool, drop } = await freshPostgresql()
  return {
    store: postgresStore(pool),
    plan: (kind, query) => planOnPostgresql(pool, kind, query),
    clear: (kind) => pool.query(`DROP TABLE "${kind.name}"`),
    drop,
  }
}

async function planOnPostgresql(pool: PostgresPool, kind: Kind, query: Query): Promise<Plan> {
  // What the database does by itself sooner or later.
  await pool.query(`VACUUM ANALYZE "${kind.name}"`)
  const { text, values } = selectionOf(kind, kind.name, query)
  const { rows } = await pool.query(`EXPLAIN ANALYZE ${text}`, values)
  const lines = (rows as { 'QUERY PLAN': string }[]).map((row) => row['QUERY PLAN'])
  const nodes = lines.join('\n').split('->')
  const number = (text: string, of: RegExp) => Number(of.exec(text)?.[1] ?? 0)
  const found = (node: string) => number(node, /actual time=\S+ rows=([\d.]+)/)
  const scans = nodes.filter((node) => /^\s*(Seq|Index|Bitmap)[\w ]* Scan /.test(node))
  const read = scans.map(
    (node) =>
      (found(node) + number(node, /Removed by Filter: (\d+)/)) * number(node, /loops=(\d+)/),
  )
  const names = scans.map((node) => /using (\S+)|Bitmap Index Scan on (\S+)/.exec(node))
  return {
    indexes: names.flatMap((match) => match?.[1] ?? match?.[2] ?? []),
    examined: Math.max(0, ...read),
    found: found(nodes[0] ?? ''),
    ms: Math.round(number(nodes.join(''), /Execution Time: ([\d.]+)/)),
    isSorted: nodes.some((node) => /^\s*(Incremental )?Sort /.test(node)),
  }
}

/** A query with its plan as one line. */
function lineOf({ equal = {}, by, from, below, after, isDescending, limit }: Query, plan: Plan) {
  const equals = Object.entries(equal).map(([name, value]) =>
    Array.isArray(value) ? `${name} of ${value.length}` : name,
  )
  const bounds = [from && 'from', below && 'below', after && 'after'].filter(Boolean)
  const order = by === undefined ? [] : [`by ${by}${isDescending ? ' down' : ''}`]
  const { indexes, examined, found, ms, isSorted } = plan
  const how = [...new Set(indexes)].join(' ') || 'NO INDEX'
  const asked = [...equals, ...order, ...bounds, `limit ${limit}`].join(', ')
  const sorted = isSorted ? ', sorted afterwards' : ''
  return `${asked}\n  ${how}: ${examined} read, ${found} found, ${ms} ms${sorted}`
}
