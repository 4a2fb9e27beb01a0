import { later, type Clock } from '../clock.ts'

/** How many there are, and how many have to be free before those in line come in, so that several do so at once. */
export interface Room {
  most: number
  wave: number
}

/**
 * So many at once, the others in line.
 *
 * @param room - may change from one moment to the next.
 */
export function createSlots(clock: Clock, room: () => Room) {
  const line = new Set<() => void>()
  let taken = 0

  return {
    /** `false`: none was free in time, or the signal aborted. */
    async enter(atMostMs: number, signal: AbortSignal): Promise<boolean> {
      if (signal.aborted) return false
      if (line.size === 0 && taken < room().most) {
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
      const { most, wave } = room()
      if (most - taken < wave) return
      for (const serve of line) {
        if (taken >= most) return
        taken += 1
        serve()
      }
    },
  }
}
