import { cancellation, type Clock } from '../clock.ts'

/** Lets one loop sleep until there is something to do. */
export interface Bell {
  /** Ends the wait under way, or the next one. */
  ring(): void
  wait(atMostMs: number): Promise<void>
}

export function createBell({ sleep }: Clock): Bell {
  let rung = cancellation()

  return {
    ring: () => rung.cancel(),

    async wait(atMostMs) {
      await sleep(atMostMs, { signal: rung.signal, ref: false })
      rung = cancellation()
    },
  }
}
