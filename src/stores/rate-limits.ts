import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible'
import type { RateLimitStore } from '../ports.ts'

/** The library counts; what is too many is judged by settings that change at any time, and so not by it. */
export const countingOnly = { points: Number.MAX_SAFE_INTEGER, duration: 1, keyPrefix: '' }

const CLOCK_TOLERANCE_MS = 10_000

/** Windows that start with their first count, on a limiter of either kind. */
export function windowsOf(limiter: RateLimiterAbstract): RateLimitStore {
  return {
    async count(key, windowMs) {
      if (!(windowMs > 0)) throw new TypeError('A window must be longer than nothing')
      const seconds = windowMs / 1000
      const counted = await limiter.penalty(key, 1, { customDuration: seconds })
      if (isWithin(counted, windowMs + CLOCK_TOLERANCE_MS)) {
        const { consumedPoints: count, msBeforeNext } = counted
        return { count, endsInMs: Math.min(msBeforeNext, windowMs) }
      }
      await limiter.set(key, 1, seconds)
      return { count: 1, endsInMs: windowMs }
    },
  }
}

// A window without an end, or with one too far away, would refuse for good.
function isWithin({ consumedPoints, msBeforeNext }: RateLimiterRes, maxMs: number): boolean {
  return consumedPoints >= 1 && msBeforeNext >= 0 && msBeforeNext <= maxMs
}
