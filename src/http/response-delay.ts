import { randomInt } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

/** In milliseconds. */
export interface ResponseDelay {
  floorMs: number
  jitterMs: number
}

/**
 * The random delay of 4.2 and 4.7: starts the clock, which must be after the body was read, or a slow body would use it up
 * (D19).
 *
 * @returns waits until the floor and a random part of the jitter have passed since.
 */
export function startDelay({ floorMs, jitterMs }: ResponseDelay): () => Promise<void> {
  const until = performance.now() + floorMs + (jitterMs > 0 ? randomInt(jitterMs * 1000) / 1000 : 0)
  return async () => {
    const rest = until - performance.now()
    if (rest > 0) await sleep(rest)
  }
}
