import { EventEmitter, once } from 'node:events'

export type Gate = ReturnType<typeof createGate>

/** Holds up a request at a named place until it is let go on. */
export function createGate() {
  const events = new EventEmitter()
  const closed = new Set<string>()

  return {
    async pass(place: string) {
      if (!closed.delete(place)) return
      events.emit('arrived')
      await once(events, 'opened')
    },
    /** Starts the request, waits until it is at the place, does the work, and lets the request go on. */
    async during<T>(place: string, request: () => Promise<T>, work: () => Promise<unknown>) {
      closed.add(place)
      const arrived = once(events, 'arrived')
      const answer = request()
      await arrived
      await work()
      events.emit('opened')
      return answer
    },
  }
}
