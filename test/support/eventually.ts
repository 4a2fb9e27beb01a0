import { setTimeout as sleep } from 'node:timers/promises'

/** `null` is what a database answers that has no such record yet. */
type Unseen = undefined | null | false

/** Waits until there is something to see, or fails: a limit for a broken run, never a statement about time. */
export async function eventually<T>(
  what: string,
  look: () => T | Unseen | Promise<T | Unseen>,
  withinMs = 60_000,
): Promise<T> {
  for (let waited = 0; waited < withinMs; waited += 20) {
    const seen = await look()
    if (seen !== undefined && seen !== null && seen !== false) return seen
    await sleep(20)
  }
  throw new Error(`did not happen within ${withinMs} ms: ${what}`)
}
