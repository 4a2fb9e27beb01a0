import { randomInt } from 'node:crypto'
import type { Clock } from '../clock.ts'

/** The random delay of answers, in milliseconds: from `floorMs` to `floorMs + jitterMs`. */
export interface ResponseDelay {
  floorMs: number
  jitterMs: number
}

/** The random delay of 4.2 and 4.7, by a clock that is never set back. It starts after the body was read: a slow body would use it up. */
export function responseDelay({ sleep }: Clock, { floorMs, jitterMs }: ResponseDelay) {
  return () => {
    const jitter = jitterMs > 0 ? randomInt(jitterMs * 1000) / 1000 : 0
    const until = performance.now() + floorMs + jitter
    return async () => {
      const rest = until - performance.now()
      if (rest > 0) await sleep(rest)
    }
  }
}
