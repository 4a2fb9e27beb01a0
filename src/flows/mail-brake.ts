import type { RateLimits } from '../ports.ts'
import type { Settings } from '../settings/table.ts'

const MINUTE_MS = 60_000

/** `mails_per_minute`: at most so many mails leave in a minute, of all processes together; the others wait (D21). */
export interface MailBrake {
  /** Whether it is worth while to take a job. */
  isOpen(): boolean
  /** Counts one mail. `undefined`: it may leave; otherwise when to try again. */
  hold(): Promise<Date | undefined>
}

export function createMailBrake(
  limits: RateLimits,
  settings: () => Settings,
  now: () => Date,
): MailBrake {
  let full: { until: Date; most: number } | undefined

  return {
    isOpen() {
      // A raised limit is in force at once.
      return !full || now() >= full.until || settings().mailsPerMinute !== full.most
    },

    async hold() {
      const { mailsPerMinute: most } = settings()
      if (most === 0) return undefined
      const { count, msToEnd } = await limits.hit('mails:all', MINUTE_MS)
      if (count <= most) return undefined
      const until = new Date(now().getTime() + msToEnd)
      full = { until, most }
      return until
    },
  }
}
