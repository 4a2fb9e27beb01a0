import type { Clock } from '../../clock.ts'
import type { RateLimits } from '../../ports/index.ts'
import { purge } from './purge.ts'

interface Window {
  count: number
  /** When it ends. */
  purgeAt: Date
}

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

    async peek(key) {
      const window = windows.get(key)
      return window && leftOf(window) > 0
        ? { count: window.count, msToEnd: leftOf(window) }
        : { count: 0, msToEnd: 0 }
    },

    async giveBack(key, hits = 1) {
      const window = windows.get(key)
      if (!window || leftOf(window) <= 0) return 0
      const taken = Math.min(hits, window.count)
      window.count -= taken
      if (window.count === 0) windows.delete(key)
      return taken
    },
  }
}
