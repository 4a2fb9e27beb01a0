import type { Clock } from '../../clock.ts'
import type { RateLimits } from '../../ports/index.ts'
import { purge } from './purge.ts'

interface Window {
  count: number
  /** When it ends. */
  purgeAt: Date
}

/** `rate_limits` in memory. */
export function memoryRateLimits({ now }: Pick<Clock, 'now'>): RateLimits {
  const windows = new Map<string, Window>()
  const leftOf = ({ purgeAt }: Window) => purgeAt.getTime() - now().getTime()

  return {
    async hit(key, windowMs) {
      purge(windows, now())
      const found = windows.get(key)
      const window =
        found && leftOf(found) <= windowMs
          ? found
          : { count: 0, purgeAt: new Date(now().getTime() + windowMs) }
      window.count += 1
      windows.set(key, window)
      return { count: window.count, msToEnd: leftOf(window) }
    },

    async msToEnd(key) {
      const window = windows.get(key)
      return window ? Math.max(0, leftOf(window)) : 0
    },
  }
}
