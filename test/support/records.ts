import { expect } from 'chai'
import type { Collection, Db, Document } from 'mongodb'
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

/** That of which this field is so, whichever database it is in; for suites that have one. */
export async function recordOf(h: Harness, name: string, which: Record<string, string>) {
  if (h.db) return (await records(h, name).findOne(which)) ?? undefined
  const { where, value } = conditionOf(which)
  return (await rowsOf(h.database?.pool, `SELECT * FROM ${name} ${where}`, [value]))[0]
}

export async function removeRecord(h: Harness, name: string, which: Record<string, string>) {
  const { where, value } = conditionOf(which)
  if (h.db) await records(h, name).deleteOne(which)
  else await rowsOf(h.database?.pool, `DELETE FROM ${name} ${where}`, [value])
  expect(await recordOf(h, name, which)).to.equal(undefined)
}

function conditionOf(which: Record<string, string>) {
  const [[field, value] = []] = Object.entries(which)
  return { where: `WHERE ${field} = $1`, value }
}

/** Does something with each damage that a record can have; afterwards it is whole again. */
export async function withDamages(
  all: Collection<Stored>,
  which: Partial<Stored>,
  damages: object[],
  work: () => Promise<unknown>,
): Promise<void> {
  for (const damage of damages) {
    const whole = await all.findOneAndUpdate(which, damage)
    if (!whole) throw new Error('there is no record to damage')
    await work()
    await all.replaceOne(which, whole)
  }
}

/** Does something while a row of PostgreSQL has no value in that column; afterwards it is whole again. */
export async function withoutField(
  { database }: Harness,
  name: string,
  which: Record<string, string>,
  field: string,
  work: () => Promise<unknown>,
): Promise<void> {
  const { where, value } = conditionOf(which)
  const select = `SELECT ${field} AS kept FROM ${name} ${where}`
  const kept = (await rowsOf(database?.pool, select, [value]))[0]?.['kept']
  expect(kept).to.not.be.oneOf([null, undefined])
  const set = `UPDATE ${name} SET ${field} = $2 ${where}`
  await rowsOf(database?.pool, set, [value, null])
  await work()
  await rowsOf(database?.pool, set, [value, kept])
}

/** As a process would have written one whose clock is so many minutes ahead of ours. */
export async function shiftTimes(
  h: Harness,
  name: string,
  which: Record<string, string>,
  times: string[],
  minutes: number,
): Promise<void> {
  const before = await recordOf(h, name, which)
  const shift = (time: string) => new Date(Number(before?.[time]) + minutes * 60_000)
  if (h.db) {
    const shifted = Object.fromEntries(times.map((time) => [time, shift(time)]))
    await records(h, name).updateOne(which, { $set: shifted })
  }
  const { where, value } = conditionOf(which)
  for (const time of h.db ? [] : times)
    await rowsOf(h.database?.pool, `UPDATE ${name} SET ${time} = $2 ${where}`, [value, shift(time)])
  const after = await recordOf(h, name, which)
  for (const time of times) expect(after?.[time]).to.deep.equal(shift(time))
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
