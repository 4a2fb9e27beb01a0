/** Counts hits in windows that begin with the first hit. The caller decides how many are too many. */
import type { Clock } from '../clock.ts'
import { kindOf, type RecordOf } from './kind.ts'
import type { Table } from './table.ts'

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

type CountedWindow = RecordOf<typeof RATE_LIMITS>

export type RateLimits = ReturnType<typeof rateLimits>

export function rateLimits(windows: Table<CountedWindow>, { now }: Pick<Clock, 'now'>) {
  return {
    /**
     * Adds one hit under the key, atomically: concurrent callers, in any process, never get the same count. A window ends after `windowMs`
     * at the latest, even if a clock was set back, or the window was longer before.
     *
     * @param most - the first hit above it is the last one that is counted and written. All later hits get the same count.
     */
    hit: (key: string, windowMs: number, most = Infinity) =>
      windows.change(key, (before) => {
        const at = now()
        const { count, msToEnd } = stateOf(before, at)
        const ms = count > 0 ? Math.min(msToEnd, windowMs) : windowMs
        const next = { id: key, count: count + 1, endsAt: new Date(at.getTime() + ms) }
        const isFull = count > most && ms === msToEnd
        return { next: isFull ? before : next, answer: { count: next.count, msToEnd: ms } }
      }),

    peek: async (key: string) => stateOf(await windows.getReadable(key), now()),

    /** Takes back this many hits of the window, at most all; 1 by default. Returns how many, atomically; without a window 0. */
    giveBack: (key: string, hits = 1): Promise<number> =>
      windows.change(key, (window) => {
        const { count } = stateOf(window, now())
        const answer = Math.min(hits, count)
        const isLess = window && answer > 0
        return { next: isLess ? { ...window, count: count - answer } : window, answer }
      }),
  }
}

/** A window without hits counts as none. It is not removed: of two that give back at once, each would remove it. */
function stateOf(window: CountedWindow | undefined, at: Date) {
  const msToEnd = window ? window.endsAt.getTime() - at.getTime() : 0
  const isOn = window && msToEnd > 0 && window.count > 0
  return isOn ? { count: window.count, msToEnd } : { count: 0, msToEnd: 0 }
}
