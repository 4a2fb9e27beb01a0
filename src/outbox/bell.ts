import type { Clock } from '../clock.ts'

/** Lets one loop sleep until there is something to do. */
export interface Bell {
  /** Ends the wait under way, or the next one. */
  ring(): void
  wait(atMostMs: number): Promise<void>
}

export function createBell({ sleep }: Clock): Bell {
  let rung = new AbortController()

  return {
    ring() {
      // With a reason of its own, as making the usual one takes longer than all the rest.
      rung.abort('rung')
    },

    async wait(atMostMs) {
      await sleep(atMostMs, { signal: rung.signal, ref: false })
      rung = new AbortController()
    },
  }
}
