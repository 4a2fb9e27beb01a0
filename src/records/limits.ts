/** Counts in windows that begin with the first hit. */
import type { Clock } from '../clock.ts'
import type { Hit, RateLimits } from '../ports/index.ts'
import { kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { tableOf } from './table.ts'

interface WindowRecord {
  /** The key. */
  id: string
  count: number
  endsAt: Date
}

export const RATE_LIMITS = kindOf<WindowRecord>({
  name: 'rate_limits',
  fields: { count: 'number', endsAt: 'time' },
  purgedAt: 'endsAt',
  isWhole: ({ count }) => Number.isSafeInteger(count) && count >= 0,
  damagedIsNone: true,
  isRemembered: true,
  isMostlyNew: true,
})

export function rateLimits(records: Records, { now }: Pick<Clock, 'now'>): RateLimits {
  const windows = tableOf(records, RATE_LIMITS)
  return {
    hit: (key, windowMs) =>
      windows.change(key, (before) => {
        const at = now()
        const isOn = isOnAt(before, at)
        // A clock was set back, or is not that of the process that began it, or the window was longer before.
        const ms = isOn ? Math.min(msTo(before, at), windowMs) : windowMs
        const endsAt = new Date(at.getTime() + ms)
        const next = { id: key, count: (isOn ? before.count : 0) + 1, endsAt }
        return { next, answer: hitOf(next, at) }
      }),

    async peek(key) {
      const window = await windows.getReadable(key)
      const at = now()
      return isOnAt(window, at) ? hitOf(window, at) : { count: 0, msToEnd: 0 }
    },

    giveBack: (key, hits = 1) =>
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

const hitOf = (window: WindowRecord, at: Date): Hit => ({
  count: window.count,
  msToEnd: msTo(window, at),
})
