import { later, type Clock } from '../clock.ts'

/** So many at once, the others in line. */
export interface Slots {
  /** `false`: none was free in time, or the signal aborted. */
  enter(atMostMs: number, signal: AbortSignal): Promise<boolean>
  leave(): void
}

/** @param most - may change from one moment to the next. */
export function createSlots(clock: Clock, most: () => number): Slots {
  const line = new Set<() => void>()
  let taken = 0

  return {
    async enter(atMostMs, signal) {
      if (signal.aborted) return false
      if (taken < most()) {
        taken += 1
        return true
      }
      return new Promise((resolve) => {
        const over = (isServed: boolean) => {
          line.delete(serve)
          cancel()
          signal.removeEventListener('abort', giveUp)
          resolve(isServed)
        }
        const serve = () => over(true)
        const giveUp = () => over(false)
        const cancel = later(clock, atMostMs, giveUp)
        signal.addEventListener('abort', giveUp)
        line.add(serve)
      })
    },

    leave() {
      taken -= 1
      for (const serve of line) {
        if (taken >= most()) return
        taken += 1
        serve()
      }
    },
  }
}
