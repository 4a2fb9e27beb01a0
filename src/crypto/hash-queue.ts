import { availableParallelism } from 'node:os'
import { AccountFlowsError } from '../errors.ts'

/** Does work that keeps a thread busy, now or in its turn. Throws `ERR_OVERLOADED`, with nothing done, where too many wait. */
export type HashQueue = <T>(work: () => Promise<T>) => Promise<T>

interface HashQueueLimits {
  /** How many run at the same time. */
  atOnce: number
  /** How many wait for a place, at most. */
  waiting: number
}

/** First come, first served. */
export function createHashQueue({ atOnce, waiting }: HashQueueLimits): HashQueue {
  let running = 0
  const queue: (() => void)[] = []

  return async (work) => {
    if (running < atOnce) running += 1
    else if (queue.length < waiting) await new Promise<void>((resolve) => queue.push(resolve))
    else throw new AccountFlowsError('ERR_OVERLOADED', 'Too many passwords wait to be hashed')
    try {
      return await work()
    } finally {
      // The next one takes this place over.
      const next = queue.shift()
      if (next) next()
      else running -= 1
    }
  }
}

/** For each one that runs. At the cost of 12 the last of them waits for about ten seconds. */
const WAITING_FOR_EACH = 32

/** What libuv starts without `UV_THREADPOOL_SIZE`. */
const DEFAULT_THREADS = 4

/**
 * One thread stays free for files and DNS look-ups, because bcrypt shares these threads. The system gives the event loop its
 * share of the processors. Measured on two processors: a request beside a full queue took 17 ms instead of 10. A third more
 * passwords were hashed.
 *
 * @param poolSize `UV_THREADPOOL_SIZE`, which libuv reads too.
 */
export function hashQueueLimits(processors: number, poolSize: string | undefined): HashQueueLimits {
  const threads = poolSize === undefined ? DEFAULT_THREADS : Number.parseInt(poolSize, 10) || 1
  const atOnce = Math.max(1, Math.min(processors, threads - 1))
  return { atOnce, waiting: atOnce * WAITING_FOR_EACH }
}

/** One for the process, because its processors and threads are: also for several flows in it. */
export const hashQueue = createHashQueue(
  hashQueueLimits(availableParallelism(), process.env['UV_THREADPOOL_SIZE']),
)

/**
 * Answers a function that runs work with the same key one after the other, in the order of the calls, also after a failure.
 * Other keys do not wait, nor do other processes.
 */
export function oneAtATime() {
  const latest = new Map<string, Promise<unknown>>()

  return async <T>(key: string, work: () => Promise<T>): Promise<T> => {
    const before = latest.get(key)
    const mine = before ? before.then(work, work) : work()
    latest.set(key, mine)
    try {
      return await mine
    } finally {
      if (latest.get(key) === mine) latest.delete(key)
    }
  }
}
