import { randomInt } from 'node:crypto'
import type { Clock } from '../clock.ts'

/** The random delay of answers, in milliseconds: from `floorMs` to `floorMs + jitterMs`. */
export interface ResponseDelay {
  floorMs: number
  jitterMs: number
}

/** Does the work, then waits for the rest of the random delay of 4.2 and 4.7. It uses a clock that is never set back. */
export async function afterDelay(
  { floorMs, jitterMs }: ResponseDelay,
  { sleep }: Clock,
  work: () => Promise<void>,
): Promise<void> {
  const jitter = jitterMs > 0 ? randomInt(jitterMs * 1000) / 1000 : 0
  const until = performance.now() + floorMs + jitter
  await work()
  const rest = until - performance.now()
  if (rest > 0) await sleep(rest)
}
