import type { Clock } from '../clock.ts'

/** Commands grow no longer than this. */
const MOST = 100
/** A command that takes so long keeps no other call waiting. */
const SLOW_MS = 250

/**
 * One command for many calls. Calls that come while a command runs, or in the same turn of the event loop, share the next one. A
 * call never joins a command that was sent before: its answer would not know what was written since.
 *
 * @param run - answers a result for each item, in their order; what it throws, all its callers get.
 */
export function together<Item, Result>(
  { now }: Pick<Clock, 'now'>,
  run: (items: Item[]) => Promise<Result[]>,
): (item: Item) => Promise<Result> {
  const waiting: { item: Item; resolve(result: Result): void; reject(error: unknown): void }[] = []
  let underWay = 0
  let begunAt = 0

  async function runAll() {
    while (waiting.length > 0) {
      const calls = waiting.splice(0, MOST)
      begunAt = now().getTime()
      try {
        const results = await run(calls.map(({ item }) => item))
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- one result an item
        for (const [index, { resolve }] of calls.entries()) resolve(results[index] as Result)
      } catch (error) {
        for (const { reject } of calls) reject(error)
      }
      // Who has an answer may have its next call ready.
      await Promise.resolve()
    }
    underWay -= 1
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      const isSlow = Math.abs(now().getTime() - begunAt) > SLOW_MS
      if (underWay > 0 && waiting.length < MOST && !isSlow) return
      underWay += 1
      process.nextTick(() => void runAll())
    })
}
