import type { AnyBulkWriteOperation, Collection, Document } from 'mongodb'
import { systemClock } from '../../clock.ts'

/** Commands grow no longer than this. */
const MOST = 100
/** A command that takes so long keeps nobody else waiting. */
const SLOW_MS = 250

/**
 * One command for many calls. Calls that come while a command runs, or in the same turn of the event loop, share the next one.
 * A single call runs at once. A command fails for all its callers, so check each item before.
 *
 * @param run - answers a result for each item, in their order; what it throws, all its callers get.
 */
export function together<Item, Result>(
  run: (items: Item[]) => Promise<Result[]>,
): (item: Item) => Promise<Result> {
  interface Call {
    item: Item
    resolve(result: Result): void
    reject(error: unknown): void
  }
  const waiting: Call[] = []
  let underWay = 0
  let begunAt = 0
  const now = () => systemClock.now().getTime()

  async function runAll() {
    while (waiting.length > 0) {
      const calls = waiting.splice(0, MOST)
      begunAt = now()
      try {
        const results = await run(calls.map(({ item }) => item))
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one result an item
        for (const [index, { resolve }] of calls.entries()) resolve(results[index] as Result)
      } catch (error) {
        for (const { reject } of calls) reject(error)
      }
      // Whoever got a result may have its next call ready.
      await Promise.resolve()
    }
    underWay -= 1
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      const isSlow = Math.abs(now() - begunAt) > SLOW_MS
      if (underWay > 0 && waiting.length < MOST && !isSlow) return
      underWay += 1
      process.nextTick(() => void runAll())
    })
}

/** Looks records up by a field of which each has its own value. */
export function foundTogether<T extends object>(
  collection: { find(filter: object): { toArray(): Promise<T[]> } },
  field: keyof T,
) {
  return together(async (values: string[]) => {
    const found = await collection.find({ [field]: { $in: values } }).toArray()
    return values.map((value) => found.find((document) => document[field] === value))
  })
}

/** Writes, in any order. @param judge - which failures are none. */
export function writtenTogether<T extends Document>(
  collection: Collection<T>,
  judge: (command: Promise<unknown>) => Promise<unknown> = (command) => command,
) {
  return together(async (writes: AnyBulkWriteOperation<T>[]) => {
    await judge(collection.bulkWrite(writes, { ordered: false }))
    return writes.map(() => {})
  })
}
