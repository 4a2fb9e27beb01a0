import { setTimeout } from 'node:timers/promises'

/** The time of this process. Times of the database are the database's. Both are called without `this`. */
export interface Clock {
  now(): Date
  /** Resolves after so many milliseconds, or at once when the signal aborts. It never rejects. */
  sleep(ms: number, options?: SleepOptions): Promise<void>
}

/** How a process waits. */
export interface SleepOptions {
  signal?: AbortSignal
  /** `false`: the process may end meanwhile. */
  ref?: boolean
}

/** The clock of the machine. */
export const systemClock: Clock = {
  now: () => new Date(),

  sleep: (ms, options) => setTimeout(ms, undefined, options).catch(() => {}),
}

/** Does `act` after so many milliseconds, unless the function that it answers is called before. */
export function later(clock: Clock, ms: number, act: () => void): () => void {
  const { signal, cancel } = cancellation()
  void clock.sleep(ms, { signal }).then(() => (signal.aborted ? undefined : act()))
  return cancel
}

/** The answer of `work`, or `late` when it is not there after so many milliseconds. The process may end meanwhile. */
export async function within<T>(
  clock: Clock,
  ms: number,
  work: T | Promise<T>,
): Promise<T | 'late'> {
  const { signal, cancel } = cancellation()
  try {
    const late = clock.sleep(ms, { signal, ref: false }).then(() => 'late' as const)
    return await Promise.race([work, late])
  } finally {
    cancel()
  }
}

/** A signal that aborts with a `TimeoutError` after so many milliseconds, unless it is cancelled before. */
export function timeout(clock: Clock, ms: number): { signal: AbortSignal; cancel(): void } {
  const late = new AbortController()
  const reason = () => new DOMException('The time is up', 'TimeoutError')
  return { signal: late.signal, cancel: later(clock, ms, () => late.abort(reason())) }
}

/** A signal that aborts when it is told to. */
export function cancellation(): { signal: AbortSignal; cancel(): void } {
  const controller = new AbortController()
  // With a reason of its own: to make the usual one takes time.
  return { signal: controller.signal, cancel: () => controller.abort('cancelled') }
}
