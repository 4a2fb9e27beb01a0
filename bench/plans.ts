/**
 * How databases find what the flows look for, beside many records of each kind. Each query of the domain is told with its plan.
 *
 * `--records` (1,000,000) of each kind, `--only` some kinds, `--on` mongodb or postgresql.
 *
 * @module
 */
import { parseArgs } from 'node:util'
import type { Db, Document } from 'mongodb'
import { memoryStore, memoryUsers, mongoStore, postgresStore } from '../src/index.ts'
import type { Fields, FieldType, Kind, Query, RecordStore, Value } from '../src/index.ts'
import { ALL_KINDS } from '../src/store/index.ts'
import { filterOf, sortOf } from '../src/store/mongodb/record-document.ts'
import { selectionOf } from '../src/store/postgresql/sql.ts'
import { freshDatabase, stopMongo } from '../test/support/mongod.ts'
import { freshPostgresql } from '../test/support/postgresql.ts'
import { storeCalls } from '../test/store/store-calls.ts'

const { values: options } = parseArgs({
  options: {
    records: { type: 'string', default: '1000000' },
    only: { type: 'string', default: '' },
    on: { type: 'string', default: 'mongodb,postgresql' },
  },
})
const RECORDS = Number(options.records)
/** Each account, grant or user has so many. */
const OF_ONE = 10
const AT_ONCE = 2_000
const YEAR_MS = 365 * 24 * 3_600_000
/** Half of all times are before it. */
const NOW = new Date()

interface Plan {
  /** The indexes that are read; none: all is looked through. */
  by: string
  examined: number
  found: number
  ms: number
  /** What is found is put in order afterwards. */
  isSorted: boolean
}

interface Database {
  store: RecordStore
  /** What the database does by itself sooner or later. */
  settle?(kind: Kind): Promise<unknown>
  plan(kind: Kind, query: Query): Promise<Plan>
  clear(kind: Kind): Promise<unknown>
  close(): Promise<void>
}

/** All queries of the domain, by their kind; of those that differ in values alone, one. */
async function queriesOfTheDomain(): Promise<Map<Kind, Query[]>> {
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
  const queries = new Map<Kind, Query[]>(ALL_KINDS.map((kind) => [kind, []]))
  for (const [kind, query] of seen.values()) queries.get(kind)?.push(amidst(kind, query))
  return queries
}

/** The same query for values that records have, in the middle of all. */
function amidst(kind: Kind, { equal, from, below, after, ...query }: Query): Query {
  const middle = (name: string): Value =>
    kind.fields[name] === 'time' ? NOW : `${name}-${Math.floor(RECORDS / OF_ONE / 2)}`
  const named = Object.entries(equal ?? {}).map(([name, value]) => [
    name,
    isState(name) ? value : middle(name),
  ])
  return {
    ...query,
    ...(equal && { equal: Object.fromEntries(named) as NonNullable<Query['equal']> }),
    ...(from !== undefined && { from: NOW }),
    ...(below !== undefined && { below: NOW }),
    ...(after && { after: { ...(query.by !== undefined && { value: NOW }), id: 'id-5' } }),
  }
}

/** The fields of which there are few values. */
const isState = (name: string) => name === 'state' || name === 'type'

const STATES = ['requested', 'resolved', 'superseded', 'dead', 'waiting', 'sessions_ended']

async function fill({ start, swap }: RecordStore, kind: Kind) {
  await start([kind])
  // As the times are told, and not as they come in.
  const { insertedAt: _, ...timed } = kind
  for (let first = 0; first < RECORDS; first += AT_ONCE) {
    const numbers = Array.from(
      { length: Math.min(AT_ONCE, RECORDS - first) },
      (_none, n) => first + n,
    )
    await swap(
      timed,
      numbers.map((n) => ({
        id: `id-${n}`,
        revision: undefined,
        next: madeUp(kind, n),
        becomes: 'new',
      })),
    )
  }
}

/** The fields of the n-th record. */
function madeUp(kind: Kind, n: number): Fields {
  const value = (name: string, type: FieldType): Value => {
    if (isState(name)) return STATES[n % STATES.length] ?? ''
    const ofOne = kind.unique.includes(name) ? n : n % (RECORDS / OF_ONE)
    // Nothing is purged meanwhile.
    const from = name === kind.purgedAt ? YEAR_MS : -RECORDS * 500
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
    async close() {
      await drop()
      stopMongo()
    },
  }
}

async function planOnMongo(db: Db, kind: Kind, query: Query): Promise<Plan> {
  const filter = { $and: [{ _id: { $type: 'string' as const } }, filterOf(query)] }
  const options = { limit: query.limit, sort: sortOf(query) }
  const cursor = db.collection<Document & { _id: string }>(kind.name).find(filter, options)
  const { executionStats: stats, queryPlanner: planner } = await cursor.explain('executionStats')
  const plan = JSON.stringify(planner.winningPlan)
  const indexes = [...plan.matchAll(/"indexName":"([^"]+)"/g)].map(([, name]) => name)
  return {
    by: [...new Set(indexes)].join(' '),
    examined: Math.max(stats.totalKeysExamined, stats.totalDocsExamined),
    found: stats.nReturned,
    ms: stats.executionTimeMillis,
    isSorted: /"stage":"SORT"/.test(plan),
  }
}

async function onPostgresql(): Promise<Database> {
  const { pool, drop } = await freshPostgresql()
  return {
    store: postgresStore(pool),
    settle: (kind) => pool.query(`VACUUM ANALYZE ${kind.name}`),

    async plan(kind, query) {
      const { text, values } = selectionOf(kind, kind.name, query)
      const explain = `EXPLAIN (ANALYZE, FORMAT JSON) ${text}`
      const { rows } = await pool.query<{ 'QUERY PLAN': [Explained] }>(explain, values)
      const [explained] = rows.flatMap((row) => row['QUERY PLAN'])
      if (!explained) throw new TypeError('PostgreSQL explains nothing')
      const { Plan: root, 'Execution Time': ms } = explained
      const nodes = [...nodesOf(root)]
      const isOfTable = (node: Node) =>
        /^(?:Seq|Index|Index Only|Bitmap Heap|Bitmap Index) Scan$/.test(node['Node Type'])
      const scans = nodes.filter(isOfTable)
      const read = scans.map(
        (node) =>
          (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      )
      return {
        by: scans
          .map((node) => node['Index Name'] ?? '')
          .join(' ')
          .trim(),
        examined: Math.max(...read),
        found: root['Actual Rows'],
        ms: Math.round(ms),
        isSorted: nodes.some((node) => node['Node Type'].includes('Sort')),
      }
    },

    clear: (kind) => pool.query(`DROP TABLE "${kind.name}"`),
    close: drop,
  }
}

interface Explained {
  Plan: Node
  'Execution Time': number
}

interface Node {
  'Node Type': string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Node[]
}

function* nodesOf(node: Node): Generator<Node> {
  yield node
  for (const inner of node.Plans ?? []) yield* nodesOf(inner)
}

/** A query as one line. */
function lineOf({ equal = {}, by, from, below, after, isDescending, limit }: Query): string {
  const equals = Object.entries(equal).map(([name, value]) =>
    Array.isArray(value) ? `${name} of ${value.length}` : name,
  )
  const bounds = [from && 'from', below && 'below', after && 'after'].filter(Boolean)
  const order = by === undefined ? [] : [`by ${by}${isDescending ? ' down' : ''}`]
  return [...equals, ...order, ...bounds, `limit ${limit}`].join(', ')
}

const DATABASES: Record<string, () => Promise<Database>> = {
  mongodb: onMongo,
  postgresql: onPostgresql,
}

const queries = await queriesOfTheDomain()
for (const name of options.on.split(',')) {
  const database = await DATABASES[name]?.()
  if (!database) throw new RangeError(`no such database: ${name}`)
  console.log(`\n${name}, ${RECORDS} records of each kind`)
  for (const [kind, asked] of queries) {
    if (options.only && !options.only.split(',').includes(kind.name)) continue
    if (asked.length === 0) continue
    await fill(database.store, kind)
    await database.settle?.(kind)
    for (const query of asked) {
      const { by, examined, found, ms, isSorted } = await database.plan(kind, query)
      const how = by === '' ? 'NO INDEX' : by
      console.log(
        `${kind.name}: ${lineOf(query)}\n  ${how}: ${examined} read, ${found} found, ${ms} ms${isSorted ? ', sorted afterwards' : ''}`,
      )
    }
    await database.clear(kind)
  }
  await database.close()
}
