import { expect } from 'chai'
import type { Db, Document } from 'mongodb'
import type { PostgresPool } from '../../src/index.ts'
import type { Database, Harness } from './harness.ts'
import { sha256 } from './observe.ts'
import { tokenOf } from './person.ts'

export type Stored = Document & { _id: string }

/** For suites on MongoDB. */
export function databaseOf(h: Harness): Db {
  if (!h.db) throw new TypeError('this harness has no database')
  return h.db
}

/** The records of one kind, by the collection that the specification names; for suites on MongoDB. */
export const records = (h: Harness, name: string) => databaseOf(h).collection<Stored>(name)

/** How the record of a mailed link is found. */
export const ofLink = (link: string) => ({ token_hash: sha256(tokenOf(link)) })

/** All that a database holds, by the name of the collection or table. */
export async function allIn({ db, pool }: Partial<Database>): Promise<Map<string, Stored[]>> {
  const all = new Map<string, Stored[]>()
  for (const { name } of (await db?.listCollections({}, { nameOnly: true }).toArray()) ?? [])
    if (!name.startsWith('system.'))
      all.set(name, (await db?.collection<Stored>(name).find().toArray()) ?? [])
  const tables = await rowsOf(pool, `SELECT tablename FROM pg_tables WHERE schemaname = 'public'`)
  for (const { tablename: name } of tables)
    all.set(name, await rowsOf(pool, `SELECT * FROM ${name}`))
  return all
}

const rowsOf = async (pool: PostgresPool | undefined, text: string, values: unknown[] = []) =>
  ((await pool?.query(text, values))?.rows ?? []) as Stored[]

/**
 * The same as one text: what a dump of it would show.
 *
 * @param without - by the name of a collection or table, which of its records are left out.
 */
export async function dumpOf(
  database: Partial<Database>,
  without: Record<string, (record: Stored) => boolean> = {},
): Promise<string> {
  const all = [...(await allIn(database))]
  return JSON.stringify(
    all.map(([name, found]) => [name, found.filter((record) => !without[name]?.(record))]),
  )
}

/** The events of a service, and all that it stored; in memory its settings. */
export async function dump(h: Harness, without?: Parameters<typeof dumpOf>[1]): Promise<string> {
  const { database } = h
  const stored = database
    ? await dumpOf(database, without)
    : JSON.stringify(await h.store.settings.read())
  return JSON.stringify(h.events) + stored
}

type Which = Record<string, string>

/** Those with these fields, whichever database they are in. */
export async function recordsIn({ db, pool }: Partial<Database>, name: string, which: Which = {}) {
  if (db) return db.collection<Stored>(name).find(which).toArray()
  return rowsOf(pool, `SELECT * FROM ${name} ${whereOf(which)}`, Object.values(which))
}

const whereOf = (which: Which) =>
  ['WHERE true', ...Object.keys(which).map((field, at) => `${field} = $${at + 1}`)].join(' AND ')

/** Writes one field of such a row of PostgreSQL. */
export async function setColumn(
  pool: PostgresPool | undefined,
  name: string,
  which: Which,
  field: string,
  value: unknown,
) {
  const set = `UPDATE ${name} SET ${field} = $${Object.keys(which).length + 1} ${whereOf(which)} RETURNING *`
  expect(await rowsOf(pool, set, [...Object.values(which), value])).to.have.length(1)
}

/** Does its work while a function of the store is another one, which is made of the real one. */
export async function instead<Part, Name extends keyof Part, R>(
  part: Part,
  name: Name,
  other: (real: Part[Name]) => Part[Name],
  work: () => Promise<R>,
): Promise<R> {
  const real = part[name]
  part[name] = other(real)
  try {
    return await work()
  } finally {
    part[name] = real
  }
}

/**
 * Just before the first call of a function of the store or of the users something happens; where that throws, the call fails. Answers
 * how many calls there were.
 *
 * @param isSuch - no other call counts.
 */
export function beforeFirst<Part extends object>(
  part: Part,
  name: keyof Part & string,
  happens: () => unknown,
  isSuch: (...given: unknown[]) => boolean = () => true,
): () => number {
  const real = Reflect.get(part, name) as (...given: unknown[]) => unknown
  let calls = 0
  Reflect.set(part, name, async (...given: unknown[]) => {
    if (isSuch(...given)) {
      calls += 1
      if (calls === 1) await happens()
    }
    return real(...given)
  })
  return () => calls
}
