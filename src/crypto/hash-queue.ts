import { availableParallelism } from 'node:os'
import { AccountFlowsError } from '../errors.ts'

/** Does `work` once a thread is free. Throws `ERR_OVERLOADED` if too many wait. */
export type HashQueue = <T>(work: () => Promise<T>, network?: string) => Promise<T>

type HashQueueLimits = ReturnType<typeof hashQueueLimits>

/** Networks take turns, each in the order of its requests, so that no request waits behind the many of another network. */
export function createHashQueue({ atOnce, waiting, waitingOfOne }: HashQueueLimits): HashQueue {
  let running = 0
  /** The waiting requests of each network, in the order of their turns. Each entry is called with whether it got a place. */
  const lines = new Map<string, ((hasPlace: boolean) => void)[]>()

  async function waitForPlace(network = UNKNOWN): Promise<boolean> {
    const line = lines.get(network) ?? []
    // Those of unknown networks share a line.
    const max = network === UNKNOWN ? Math.ceil(waiting / 2) : waitingOfOne
    const waitingNow = [...lines.values()].flat().length
    if (line.length >= max || (waitingNow >= waiting && !makeRoom(line.length + 1))) return false
    lines.set(network, line)
    return new Promise((resolve) => line.push(resolve))
  }

  /** The last request of the longest line gives way to one of a shorter line. */
  function makeRoom(length: number): boolean {
    const [longest] = [...lines.values()].sort((one, other) => other.length - one.length)
    if (!longest || longest.length <= length) return false
    longest.pop()?.(false)
    return true
  }

  function handOver() {
    const [next] = lines
    if (!next) {
      running -= 1
      return
    }
    const [network, [first, ...others]] = next
    lines.delete(network)
    if (others.length > 0) lines.set(network, others)
    first?.(true)
  }

  return async (work, network) => {
    if (running < atOnce) running += 1
    else if (!(await waitForPlace(network)))
      throw new AccountFlowsError('ERR_OVERLOADED', 'Too many passwords wait to be hashed')
    try {
      return await work()
    } finally {
      handOver()
    }
  }
}

/** Also what `networkOf` says of an address that it cannot read. */
const UNKNOWN = 'unknown'

/** How many wait for each request that runs. At cost 12, the last of them waits for about ten seconds. */
const WAITING_FOR_EACH = 32

/** How many of one network wait for each request that runs. If no other network waits, the last waits for about a second. */
const OF_ONE_FOR_EACH = 4

/** Of libuv, without `UV_THREADPOOL_SIZE`. */
const DEFAULT_THREADS = 4

/** One thread stays free for files and DNS look-ups, because bcrypt shares these threads. The event loop still gets its share. */
export function hashQueueLimits(processors: number, poolSize: string | undefined) {
  const threads = poolSize === undefined ? DEFAULT_THREADS : Number.parseInt(poolSize, 10) || 1
  const atOnce = Math.max(1, Math.min(processors, threads - 1))
  return {
    atOnce,
    waiting: atOnce * WAITING_FOR_EACH,
    waitingOfOne: atOnce * OF_ONE_FOR_EACH,
  }
}

/** One queue for the process, even with several flows in it: they share its threads. */
export const hashQueue = createHashQueue(
  hashQueueLimits(availableParallelism(), process.env['UV_THREADPOOL_SIZE']),
)
