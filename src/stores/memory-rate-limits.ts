import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { RateLimitStore } from '../ports.ts'
import { countingOnly, windowsOf } from './rate-limits.ts'

/** `rate_limits` in memory. A count is dropped when its window ends. */
export function memoryRateLimits(): RateLimitStore {
  return windowsOf(new RateLimiterMemory(countingOnly))
}
