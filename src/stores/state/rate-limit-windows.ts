import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible'
import type { Hit, RateLimits } from '../../ports/index.ts'

/** Processes may differ by this much; a window that is longer is none of ours. */
const MAX_SKEW_MS = 10_000

/** Out of reach: what is too much is judged where the settings are known, and they change at run time. */
export const COUNT_ONLY = { keyPrefix: '', points: Number.MAX_SAFE_INTEGER, duration: 1 }

/** Windows that begin with the first hit, on either kind of limiter. */
export function windowsOf(limiter: RateLimiterAbstract): RateLimits {
  return {
    async hit(key, windowMs) {
      const seconds = windowMs / 1000
      const counted = await limiter.penalty(key, 1, { customDuration: seconds })
      if (isWithin(counted, windowMs + MAX_SKEW_MS)) return hitOf(counted, windowMs)
      await limiter.set(key, 1, seconds)
      return { count: 1, msToEnd: windowMs }
    },

    async msToEnd(key) {
      const found = await limiter.get(key)
      return found && isWithin(found, Infinity) ? found.msBeforeNext : 0
    },
  }
}

// False for a damaged record too: what has no end, or no count, would refuse for good.
function isWithin({ consumedPoints, msBeforeNext }: RateLimiterRes, maxMs: number): boolean {
  return consumedPoints >= 1 && msBeforeNext >= 0 && msBeforeNext <= maxMs
}

function hitOf({ consumedPoints, msBeforeNext }: RateLimiterRes, windowMs: number): Hit {
  return { count: consumedPoints, msToEnd: Math.min(msBeforeNext, windowMs) }
}
