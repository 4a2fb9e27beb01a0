import { EventEmitter, once } from 'node:events'

/** A line of callers that wait for something to get free. */
export function createLine() {
  const freed = new EventEmitter().setMaxListeners(0)
  return {
    /** Something got free. */
    call: () => void freed.emit('free'),

    /** Takes what is free, now or later. `take` answers `undefined` while nothing is. Throws once the signal aborts. */
    async wait<T>(take: () => T | undefined, signal: AbortSignal): Promise<T> {
      for (;;) {
        signal.throwIfAborted()
        const taken = take()
        if (taken !== undefined) return taken
        await once(freed, 'free', { signal })
      }
    },
  }
}
