import { randomInt } from 'node:crypto'
import type { Clock } from '../clock.ts'

/** The random delay of answers, in milliseconds: from `floorMs` to `floorMs + jitterMs`. */
export interface ResponseDelay {
  floorMs: number
  jitterMs: number
}

/**
 * Starts to count, which must be after the body was read, or a slow body would use the delay up.
 *
 * @returns waits until the floor and a random part of the jitter have passed since.
 */
export type StartDelay = () => () => Promise<void>

/** The random delay of 4.2 and 4.7, by a time that nobody sets back. */
export function responseDelay({ sleep }: Clock, { floorMs, jitterMs }: ResponseDelay): StartDelay {
  return () => {
    const jitter = jitterMs > 0 ? randomInt(jitterMs * 1000) / 1000 : 0
    const until = performance.now() + floorMs + jitter
    return async () => {
      const rest = until - performance.now()
      if (rest > 0) await sleep(rest)
    }
  }
}
