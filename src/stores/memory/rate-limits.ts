import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { RateLimits } from '../../ports/index.ts'
import { COUNT_ONLY, windowsOf } from '../state/rate-limit-windows.ts'

/** `rate_limits` in memory. A key is forgotten when its window ends. */
export function memoryRateLimits(): RateLimits {
  return windowsOf(new RateLimiterMemory(COUNT_ONLY))
}
