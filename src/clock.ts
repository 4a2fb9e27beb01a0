import { setTimeout } from 'node:timers/promises'

/** The time of this process. The database keeps its own time. Both functions are called without `this`. */
export interface Clock {
  now(): Date
  /** Resolves after `ms` milliseconds, or at once when the signal aborts. It never rejects. */
  sleep(ms: number, options?: SleepOptions): Promise<void>
}

/** How a process waits. */
export interface SleepOptions {
  signal?: AbortSignal
  /** `false`: the process may end meanwhile. */
  ref?: boolean
}

export const systemClock: Clock = {
  now: () => new Date(),

  sleep: (ms, options) => setTimeout(ms, undefined, options).catch(() => {}),
}

/** Calls `act` after `ms` milliseconds, unless the returned function is called before. */
export function later(clock: Clock, ms: number, act: () => void): () => void {
  const waiting = new AbortController()
  const { signal } = waiting
  void clock.sleep(ms, { signal }).then(() => (signal.aborted ? undefined : act()))
  // With a reason of its own: the usual one takes time to make.
  return () => waiting.abort('cancelled')
}

/** The answer of `work`, or `late` if there is none after `ms` milliseconds. The process may end meanwhile. */
export async function within<T>(
  clock: Clock,
  ms: number,
  work: T | Promise<T>,
): Promise<T | 'late'> {
  const waiting = new AbortController()
  try {
    const asleep = clock.sleep(ms, { signal: waiting.signal, ref: false })
    return await Promise.race([work, asleep.then(() => 'late' as const)])
  } finally {
    waiting.abort('answered')
  }
}

/** A signal that aborts with a `TimeoutError` after `ms` milliseconds, or together with `stop`, with its reason. `cancel` ends the wait. */
export function timeout(
  clock: Clock,
  ms: number,
  stop?: AbortSignal,
): { signal: AbortSignal; cancel(): void } {
  const over = new AbortController()
  const { signal } = over
  const late = () => over.abort(new DOMException('The time is up', 'TimeoutError'))
  void clock.sleep(ms, { signal }).then(() => signal.aborted || late())
  // Not `AbortSignal.any`: in Node 20 the garbage collector may take a time-out too early.
  stop?.addEventListener('abort', () => over.abort(stop.reason), { signal })
  if (stop?.aborted) over.abort(stop.reason)
  return { signal, cancel: () => over.abort('cancelled') }
}

/** The answer of `work`. It throws once the signal aborts, and ignores what `work` answers later. */
export async function unlessAborted<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  let stop = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(new Error('The signal aborted'))
  })
  signal.addEventListener('abort', stop)
  return Promise.race([work(), aborted]).finally(() => signal.removeEventListener('abort', stop))
}

/** Runs all work of one key in the order of the calls, also after a failure. Other keys and other processes do not wait. */
export function oneAtATime() {
  const latest = new Map<string, Promise<unknown>>()

  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const mine = (latest.get(key) ?? Promise.resolve()).then(work, work)
    latest.set(key, mine)
    try {
      return await mine
    } finally {
      if (latest.get(key) === mine) latest.delete(key)
    }
  }
}
