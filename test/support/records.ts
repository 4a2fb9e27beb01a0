import { expect } from 'chai'
import type { Db, Document, Filter } from 'mongodb'
import type { Harness } from './harness.ts'
import { sha256 } from './observe.ts'
import { tokenOf } from './person.ts'

interface Stored extends Document {
  _id: string
}

/** For suites on MongoDB. */
export function databaseOf(h: Harness): Db {
  if (!h.db) throw new TypeError('this harness has no database')
  return h.db
}

/**
 * Everything stored, as one text: what a dump of the database would show.
 *
 * @param only - by the name of a collection, which of its records.
 */
export async function dump(
  h: Harness,
  only: Record<string, Filter<Document>> = {},
): Promise<string> {
  if (!h.db) return JSON.stringify([h.events, await h.store.settings.read()])
  const collections = await h.db.listCollections({}, { nameOnly: true }).toArray()
  const all: unknown[] = [h.events]
  for (const { name } of collections) {
    if (!name.startsWith('system.'))
      all.push(
        name,
        await h.db
          .collection(name)
          .find(only[name] ?? {})
          .toArray(),
      )
  }
  return JSON.stringify(all)
}

/** The records of one kind, by the collection that the specification names; for suites on MongoDB. */
export const records = (h: Harness, name: string) => databaseOf(h).collection<Stored>(name)

/** How the record of a mailed link is found. */
export const ofLink = (link: string) => ({ token_hash: sha256(tokenOf(link)) })

/** Does something with each damage that a record can have; afterwards it is whole again. */
export async function withDamages(
  h: Harness,
  name: string,
  which: Partial<Stored>,
  damages: object[],
  work: () => Promise<unknown>,
): Promise<void> {
  const all = records(h, name)
  for (const damage of damages) {
    const whole = await all.findOneAndUpdate(which, damage)
    if (!whole) throw new Error('there is no record to damage')
    await work()
    await all.replaceOne(which, whole)
  }
}

/** As a process would have written it whose clock is so many minutes ahead of ours. */
export async function shiftTimes(
  h: Harness,
  name: string,
  which: Partial<Stored>,
  times: string[],
  minutes: number,
): Promise<void> {
  const shifted = times.map((time) => [
    time,
    { $dateAdd: { startDate: `$${time}`, unit: 'minute', amount: minutes } },
  ])
  const changed = await records(h, name).updateOne(which, [{ $set: Object.fromEntries(shifted) }])
  expect(changed.modifiedCount).to.equal(1)
}
