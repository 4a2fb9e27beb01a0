import type { Clock } from '../clock.ts'

/** Of one client; so those that hang leave room for the others. */
const AT_ONCE_EACH = 2
/** Who takes longer is slow until it answers sooner. The slow ones have places of their own: no other client waits for them. */
const SLOW_MS = 1_000
const MOST_SLOW = 1_000

/** Which clients may be told just now, as this process knows them. `ring` is called where a client has room again. */
export function createClientPlaces(clock: Clock, ring: () => void) {
  const underWay = new Map<string, number>()
  const slow = new Set<string>()
  const now = () => clock.now().getTime()
  const hasRoom = (client: string) => (underWay.get(client) ?? 0) < AT_ONCE_EACH

  return {
    /** Those that no place is for: slow ones, and those that are told as often as they may be. */
    taken: () => [...slow, ...[...underWay.keys()].filter((client) => !hasRoom(client))],

    /** The slow ones that have room. */
    slow: () => [...slow].filter(hasRoom),

    /** Counts an attempt for as long as it takes. */
    async counted(client: string, attempt: () => Promise<void>) {
      const count = (change: number) => underWay.set(client, (underWay.get(client) ?? 0) + change)
      const begunAt = now()
      count(1)
      try {
        await attempt()
      } finally {
        count(-1)
        slow.delete(client)
        if (now() - begunAt > SLOW_MS) slow.add(client)
        const [oldest] = slow
        if (slow.size > MOST_SLOW && oldest !== undefined) slow.delete(oldest)
        if (underWay.get(client) === 0) underWay.delete(client)
        // It may have more.
        else ring()
      }
    },
  }
}
