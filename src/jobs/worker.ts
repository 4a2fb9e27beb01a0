/** Workers: each takes jobs of a queue, many at a time, and looks for more. It knows nothing of what they are about. */
import { setMaxListeners } from 'node:events'
import { within, type Clock } from '../clock.ts'
import type { Log } from '../contract/index.ts'

/** The store cannot be reached, or is overloaded. Rings do not end this wait. */
const AFTER_FAILURE_MS = 2_000
/** Without a ring, a worker looks for jobs so often at least. */
const POLL_MS = 1_000
/** Of the time to stop, what is under way has to end by itself before it is given back. */
const GRACE = 0.5
const FIRST_RETRY_MS = 2_000
const WAKE_WITHIN_MS = 250

/** What the log tells of a job. */
interface Job {
  id: string
  kind?: string
}

interface WorkerParts<J extends Job> {
  /** For the log, such as `mail`. */
  name: string
  /** So many jobs are under way at most. */
  atOnce: number
  /** More are taken once so many may be: the steps of jobs that were claimed together are one command for all of them. */
  wave: number
  claim(most: number): Promise<J[]>
  /** What it throws is logged; the lease of the job runs out, and it is taken again. `stop` aborts where the job is to be given back. */
  work(job: J, stop: AbortSignal): Promise<void>
  clock: Clock
  log: Log
}

/** Takes jobs, many at a time, until it is stopped. */
export function createWorker<J extends Job>(parts: WorkerParts<J>) {
  const { atOnce, wave, clock } = parts
  const underWay = new Set<Promise<void>>()
  let rung = new AbortController()
  let ends = newEnds(atOnce)
  let running = Promise.resolve()

  const ring = () => rung.abort('rung')

  function begin(job: J) {
    const working = parts
      .work(job, ends.giving.signal)
      .catch(logFailure(parts, 'job', { job: job.id, ...(job.kind && { kind: job.kind }) }))
      .finally(() => {
        underWay.delete(working)
        if (underWay.size === atOnce - wave) ring()
      })
    underWay.add(working)
  }

  async function run({ signal }: AbortController) {
    while (!signal.aborted) {
      const free = atOnce - underWay.size
      const jobs = free < wave ? [] : await parts.claim(free).catch(logFailure(parts, 'outbox'))
      jobs?.forEach(begin)
      if (!jobs) await clock.sleep(AFTER_FAILURE_MS, { signal, ref: false })
      else if (jobs.length === 0) {
        const ms = POLL_MS * (0.5 + Math.random() / 2)
        await clock.sleep(ms, { signal: rung.signal, ref: false })
        rung = new AbortController()
      }
    }
    await Promise.all(underWay)
  }

  return {
    /** There may be something to do. */
    ring,

    start() {
      ends.stopping.abort()
      ends = newEnds(atOnce)
      running = run(ends.stopping)
    },

    /** Takes no more jobs, waits for those under way, and gives back what does not end in time: all within `withinMs`. */
    async stop(withinMs: number) {
      ends.stopping.abort()
      ring()
      await within(clock, withinMs * GRACE, running)
      ends.giving.abort()
      await within(clock, withinMs * (1 - GRACE), running)
    },
  }
}

function logFailure(
  { name, log }: Pick<WorkerParts<Job>, 'name' | 'log'>,
  what: string,
  of: Record<string, string> = {},
) {
  return (error: unknown): undefined => {
    log('error', `${name} ${what} failed`, { ...of, error: String(error) })
  }
}

/** One says to take no more, the other to give back what is under way. */
function newEnds(atOnce: number) {
  const giving = new AbortController()
  setMaxListeners(2 * atOnce, giving.signal)
  return { stopping: new AbortController(), giving }
}

/** Plans a look at jobs that are due at a time. One that is planned for soon after it already finds them too. */
export function createWaking(clock: Clock, ring: () => void): (at: Date) => void {
  let planned: number | undefined

  async function look(inMs: number) {
    await clock.sleep(inMs, { ref: false })
    planned = undefined
    ring()
  }

  return (at) => {
    const due = at.getTime()
    if (planned !== undefined && due <= planned && planned <= due + WAKE_WITHIN_MS) return
    planned = due + Math.random() * WAKE_WITHIN_MS
    void look(planned - clock.now().getTime())
  }
}

/** How long to wait before another attempt: about twice as long each time. A random part keeps jobs that failed together apart. */
export function backoffMs(attempts: number, mostMs: number): number {
  const longest = Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), mostMs)
  return longest / 2 + Math.random() * (longest / 2)
}
