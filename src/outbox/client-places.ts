import type { LogoutFailure } from '../ports/index.ts'

const MOST_SLOW = 1_000

/** How an attempt ended. `undefined`: the client was told. `stopped`: nobody knows. */
export type Told = LogoutFailure | 'stopped' | undefined

/**
 * Which clients may be told just now, as this process knows them: one logout at a time each. A client that timed out is slow until it
 * answers. The slow ones have places of their own, so no other client waits for them. `ring` is called where a client has room again.
 */
export function createClientPlaces(ring: () => void) {
  const busy = new Set<string>()
  const slow = new Set<string>()

  return {
    /** The clients that other places are for, and those that are being told. */
    taken: () => [...slow, ...busy],

    /** The slow ones that have room. */
    slow: () => [...slow].filter((client) => !busy.has(client)),

    /** The client is busy for as long as it is told. */
    async during(client: string, tell: () => Promise<Told>): Promise<Told> {
      busy.add(client)
      const told = await tell().finally(() => busy.delete(client))
      slow.delete(client)
      if (told !== 'stopped' && told?.reason === 'timeout') slow.add(client)
      const [oldest] = slow
      if (slow.size > MOST_SLOW && oldest !== undefined) slow.delete(oldest)
      ring()
      return told
    },
  }
}
