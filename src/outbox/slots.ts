import { later, type Clock } from '../clock.ts'

/** So many at once, the others in line. */
export interface Slots {
  /** `false`: none was free in time, or the signal aborted. */
  enter(atMostMs: number, signal: AbortSignal): Promise<boolean>
  leave(): void
}

export function createSlots(clock: Clock, count: number): Slots {
  const line = new Set<() => void>()
  let free = count

  return {
    async enter(atMostMs, signal) {
      if (signal.aborted) return false
      if (free > 0) {
        free -= 1
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
      const [first] = line
      if (first) first()
      else free += 1
    },
  }
}
