/** Counts hits in windows that begin with the first hit. The caller decides how many are too many. */
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
     * Adds one hit under the key, atomically: concurrent callers, in any process, never get the same count. A window that would last longer
     * than `windowMs` ends after `windowMs`. That happens when a clock was set back, or when the window was longer before.
     *
     * @param most - the first hit above it is the last one that is counted and written. All later hits get the same count.
     */
    hit: (key: string, windowMs: number, most = Infinity) =>
      windows.change(key, (before) => {
        const at = now()
        const isOn = isOnAt(before, at)
        // The rest can be too long: a clock was set back, another process's clock differs, or the window was longer before.
        const ms = isOn ? Math.min(msTo(before, at), windowMs) : windowMs
        const endsAt = new Date(at.getTime() + ms)
        const next = { id: key, count: (isOn ? before.count : 0) + 1, endsAt }
        const isFull = isOn && before.count > most && Number(endsAt) === Number(before.endsAt)
        return { next: isFull ? before : next, answer: hitOf(next, at) }
      }),

    /** Reads the state of the key, and counts nothing. Without a window, all values are 0. */
    async peek(key: string) {
      const window = await windows.getReadable(key)
      const at = now()
      return isOnAt(window, at) ? hitOf(window, at) : { count: 0, msToEnd: 0 }
    },

    /** Takes back this many hits of the window, at most all; 1 by default. Returns how many, atomically; without a window 0. */
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

/** A window without hits is over. It is not removed: of two that give back at once, each would remove it. */
const isOnAt = (window: WindowRecord | undefined, at: Date): window is WindowRecord =>
  window !== undefined && msTo(window, at) > 0 && window.count > 0

/** `msToEnd`: milliseconds until the window ends, from 0 to its length. */
const hitOf = (window: WindowRecord, at: Date) => ({
  count: window.count,
  msToEnd: msTo(window, at),
})
