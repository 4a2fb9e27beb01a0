import { cancellation, type Clock } from '../clock.ts'

/** Lets one loop sleep until there is something to do. */
export function createBell({ sleep }: Clock) {
  let rung = cancellation()

  return {
    /** Ends the wait under way, or the next one. */
    ring: () => rung.cancel(),

    async wait(atMostMs: number): Promise<void> {
      await sleep(atMostMs, { signal: rung.signal, ref: false })
      rung = cancellation()
    },
  }
}
