import type { RateLimiterRes } from 'rate-limiter-flexible'
import type { RateCount } from '../ports.ts'

/** The library counts; what is too many is judged by settings that change at any time, and so not by it. */
export const countingOnly = { points: Number.MAX_SAFE_INTEGER, duration: 1, keyPrefix: '' }

/** The library counts in seconds. */
export function inWindow(windowMs: number) {
  if (!(windowMs > 0)) throw new TypeError('A window must be longer than nothing')
  return { customDuration: windowMs / 1000 }
}

export function countOf({ consumedPoints, msBeforeNext }: RateLimiterRes): RateCount {
  return { count: consumedPoints, endsInMs: Math.max(0, msBeforeNext) }
}
