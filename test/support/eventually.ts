import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until there is something to see, or fails: a limit for a broken run, never a statement about time. */
export async function eventually<T>(
  what: string,
  look: () => T | undefined | false | Promise<T | undefined | false>,
  withinMs = 10_000,
): Promise<T> {
  for (let waited = 0; waited < withinMs; waited += 20) {
    const seen = await look()
    if (seen !== undefined && seen !== false) return seen
    await sleep(20)
  }
  throw new Error(`did not happen within ${withinMs} ms: ${what}`)
}
