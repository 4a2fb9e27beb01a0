import type { RateLimitStore } from '../ports.ts'
import type { Settings } from '../settings/table.ts'

const MINUTE_MS = 60_000

/** How many mails leave in a minute, all accounts and processes together (D21). None is lost: those that are too many wait. */
export interface MailBrake {
  /** Counts a mail that is about to leave. `undefined`: it may; otherwise the time from which on it may be tried. */
  waitsUntil(): Promise<Date | undefined>
  /** Whether this process knows that none may leave for now. */
  isOn(): boolean
}

export function createMailBrake(
  limits: RateLimitStore,
  settings: () => Settings,
  now: () => Date,
): MailBrake {
  let onUntil = new Date(0)
  return {
    async waitsUntil() {
      const { count, endsInMs } = await limits.count('mails', MINUTE_MS)
      if (count <= settings().mailsPerMinute) return undefined
      onUntil = new Date(now().getTime() + Math.min(endsInMs, MINUTE_MS))
      return onUntil
    },

    isOn: () => now() < onUntil,
  }
}
