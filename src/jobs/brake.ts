import type { RateLimits } from '../store/index.ts'
import type { Settings } from '../settings/table.ts'

const MINUTE_MS = 60_000

export type MailBrake = ReturnType<typeof createMailBrake>

/** `mails_per_minute`: at most so many mails leave in a minute, of all processes together; the others wait. */
export function createMailBrake(limits: RateLimits, settings: () => Settings, now: () => Date) {
  let full = { until: new Date(0), most: 0 }

  return {
    /** Whether it is worth while to take a job. A limit that was changed is in force at once. */
    isOpen: () => now() >= full.until || settings().mailsPerMinute !== full.most,

    /** Counts one mail, and answers whether it may leave. */
    async mayLeave(): Promise<boolean> {
      const { mailsPerMinute: most } = settings()
      if (most === 0) return true
      const { count, msToEnd } = await limits.hit('mails:all', MINUTE_MS, most)
      if (count <= most) return true
      full = { until: new Date(now().getTime() + msToEnd), most }
      return false
    },
  }
}
