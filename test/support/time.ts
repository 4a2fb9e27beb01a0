import { setImmediate as turn } from 'node:timers/promises'
import type { Clock } from '../../src/clock.ts'

/**
 * The time of this process, which moves when a test says so: for our own code by `movableClock`, for oidc-provider and the
 * libraries by `Date`. MongoDB and other processes keep theirs.
 *
 * @module
 */

const SystemDate = Date
let ahead = 0
const now = () => SystemDate.now() + ahead

globalThis.Date = new Proxy(SystemDate, {
  construct: (target, given) => Reflect.construct(target, given.length > 0 ? given : [now()]),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
})

/** A wait that nothing cuts short is for the second of a login or the random start of a mail: it is over at once. */
const AT_ONCE_MS = 1_000
const sleepers = new Set<{ until: number; wake(): void }>()

/** Of the time that passes by itself, only short waits pass at once; all others wait until a test moves time, or the time comes. */
export const movableClock: Clock = {
  now: () => new Date(),

  async sleep(ms, { signal, ref = true } = {}) {
    const until = now() + ms
    if (!signal && ms <= AT_ONCE_MS) {
      await turn()
      return advance(until - now())
    }
    if (signal?.aborted) return
    await new Promise<void>((resolve) => {
      const sleeper = { until, wake }
      // A timer fires a little early now and then.
      const timer = setTimeout(wake, ms + 1)
      if (!ref) timer.unref()
      function wake() {
        clearTimeout(timer)
        sleepers.delete(sleeper)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      signal?.addEventListener('abort', wake)
      sleepers.add(sleeper)
    })
  },
}

/** Time is so much later from now on, and whoever waited for less goes on. */
export async function moveTime(ms: number): Promise<void> {
  advance(ms)
  await turn()
}

/** Does what another process would do, whose clock is so much ahead of ours; behind it where that is negative. */
export async function byAnotherClock<T>(ms: number, work: () => Promise<T>): Promise<T> {
  ahead += ms
  try {
    return await work()
  } finally {
    ahead -= ms
  }
}

/** For whoever starts anew and finds nothing that lived in the moved time. */
export function resetTime(): void {
  ahead = 0
}

function advance(ms: number): void {
  if (ms <= 0) return
  ahead += ms
  for (const { until, wake } of sleepers) if (until <= now()) wake()
}
