import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { RateLimitStore } from '../ports.ts'
import { countOf, countingOnly, inWindow } from './rate-limits.ts'

/** `rate_limits` in memory. A count is dropped when its window ends. */
export function memoryRateLimits(): RateLimitStore {
  const limiter = new RateLimiterMemory(countingOnly)
  return {
    count: async (key, windowMs) => countOf(await limiter.penalty(key, 1, inWindow(windowMs))),
  }
}
