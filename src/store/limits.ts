/** Counts in windows that begin with the first hit. The caller decides how much is too much. */
import type { Clock } from '../clock.ts'
import { kindOf, type RecordOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

/** The id of a window is its key. */
export const RATE_LIMITS = kindOf({
  name: 'rate_limits',
  fields: { count: 'number', endsAt: 'time' },
  purgedAt: 'endsAt',
  isWhole: ({ count }) => Number.isSafeInteger(count) && count >= 0,
  damagedIsNone: true,
  isRemembered: true,
  isMostlyNew: true,
})

type WindowRecord = RecordOf<typeof RATE_LIMITS>

export type RateLimits = ReturnType<typeof rateLimits>

export function rateLimits(records: Records, { now }: Pick<Clock, 'now'>) {
  const windows = tableOf(records, RATE_LIMITS)
  return {
    /**
     * Counts one more under the key, atomically: of concurrent callers, in any process, no two get the same count. A window that
     * would last longer than `windowMs` ends after that; a clock was set back, or the window was longer before.
     *
     * @param most - the first hit above it is the last that is counted and written. All later ones get that count.
     */
    hit: (key: string, windowMs: number, most = Infinity) =>
      windows.change(key, (before) => {
        const at = now()
        const isOn = isOnAt(before, at)
        // A clock was set back, or is not that of the process that began it, or the window was longer before.
        const ms = isOn ? Math.min(msTo(before, at), windowMs) : windowMs
        const endsAt = new Date(at.getTime() + ms)
        const next = { id: key, count: (isOn ? before.count : 0) + 1, endsAt }
        const isFull = isOn && before.count > most && Number(endsAt) === Number(before.endsAt)
        return { next: isFull ? before : next, answer: hitOf(next, at) }
      }),

    /** How the key stands. Counts nothing; without a window all is 0. */
    async peek(key: string) {
      const window = await windows.getReadable(key)
      const at = now()
      return isOnAt(window, at) ? hitOf(window, at) : { count: 0, msToEnd: 0 }
    },

    /** Takes so many hits of the window back, all at most: 1 if not given. Answers how many, atomically; without a window 0. */
    giveBack: (key: string, hits = 1): Promise<number> =>
      windows.change(key, (window) => {
        if (!isOnAt(window, now())) return { next: window, answer: 0 }
        const answer = Math.min(hits, window.count)
        const count = window.count - answer
        return { next: { ...window, count }, answer }
      }),
  }
}

const msTo = ({ endsAt }: WindowRecord, at: Date) => endsAt.getTime() - at.getTime()

/** One that gave all its hits back is over. It is not removed: of two that give back at once, each would have removed it. */
const isOnAt = (window: WindowRecord | undefined, at: Date): window is WindowRecord =>
  window !== undefined && msTo(window, at) > 0 && window.count > 0

/** `msToEnd`: milliseconds until the window ends; from 0 to its length. */
const hitOf = (window: WindowRecord, at: Date) => ({
  count: window.count,
  msToEnd: msTo(window, at),
})
