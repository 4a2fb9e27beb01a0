import { expect } from 'chai'
import type { Collection, Db, Document, Filter } from 'mongodb'
import type { Harness } from './harness.ts'
import { sha256 } from './observe.ts'
import { tokenOf } from './person.ts'

type Stored = Document & { _id: string }

/** For suites on MongoDB. */
export function databaseOf(h: Harness): Db {
  if (!h.db) throw new TypeError('this harness has no database')
  return h.db
}

/** The records of one kind, by the collection that the specification names; for suites on MongoDB. */
export const records = (h: Harness, name: string) => databaseOf(h).collection<Stored>(name)

/** How the record of a mailed link is found. */
export const ofLink = (link: string) => ({ token_hash: sha256(tokenOf(link)) })

/**
 * All that a database holds, as one text: what a dump of it would show.
 *
 * @param only - by the name of a collection, which of its records.
 */
export async function dumpOf(db: Db, only: Record<string, Filter<Document>> = {}): Promise<string> {
  const all: unknown[] = []
  for (const { name } of await db.listCollections({}, { nameOnly: true }).toArray()) {
    if (name.startsWith('system.')) continue
    const found = db.collection(name).find(only[name] ?? {})
    all.push(name, await found.toArray())
  }
  return JSON.stringify(all)
}

/** The events of a service, and all that it stored; in memory its settings. */
export async function dump(h: Harness, only?: Record<string, Filter<Document>>): Promise<string> {
  const stored = h.db ? await dumpOf(h.db, only) : JSON.stringify(await h.store.settings.read())
  return JSON.stringify(h.events) + stored
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

/** As a process would have written one whose clock is so many minutes ahead of ours. */
export async function shiftTimes(
  all: Collection<Stored>,
  which: Partial<Stored>,
  times: string[],
  minutes: number,
): Promise<void> {
  const shift = (time: string) => ({
    $dateAdd: { startDate: `$${time}`, unit: 'minute', amount: minutes },
  })
  const shifted = Object.fromEntries(times.map((time) => [time, shift(time)]))
  const { modifiedCount } = await all.updateOne(which, [{ $set: shifted }])
  expect(modifiedCount).to.equal(1)
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
