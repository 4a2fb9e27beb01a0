/** A worker takes jobs of a queue, many at a time, and looks for more. It does not know what its jobs are about. */
import { setMaxListeners } from 'node:events'
import { within, type Clock } from '../clock.ts'
import type { Log } from '../contract/index.ts'

/** How long a worker waits when the store cannot be reached, or is overloaded. Rings do not end this wait. */
const AFTER_FAILURE_MS = 2_000
/** Without a ring, a worker looks for jobs at least this often. */
const POLL_MS = 1_000
/** The part of the stopping time in which running jobs may end by themselves, before they are given back. */
const GRACE = 0.5
const FIRST_RETRY_MS = 2_000
const WAKE_WITHIN_MS = 250

interface Job {
  id: string
  kind?: string
}

interface WorkerParts<J> {
  /** The name in the log, such as `mail`. */
  name: string
  atOnce: number
  /** The worker takes more once it has room for this many. The steps of jobs that were claimed together share one command. */
  wave: number
  claim(most: number): Promise<J[]>
  /** An error is logged; the lease of the job runs out, and a worker takes it again. `stop` aborts when the job must be given back. */
  work(job: J, stop: AbortSignal): Promise<void>
  clock: Clock
  log: Log
}

export function createWorker<J extends Job>(parts: WorkerParts<J>) {
  const { name, atOnce, wave, clock, log } = parts
  const underWay = new Set<Promise<void>>()
  let rung = new AbortController()
  /** Ends the taking of jobs. */
  let stopping = new AbortController()
  /** Gives back the running jobs. */
  let giving = new AbortController()
  let running = Promise.resolve()

  const ring = () => rung.abort('rung')

  const logFailure =
    (what: string, of: object = {}) =>
    (error: unknown): undefined => {
      log('error', `${name} ${what} failed`, { ...of, error: String(error) })
    }

  function begin(job: J) {
    const working = parts
      .work(job, giving.signal)
      .catch(logFailure('job', { job: job.id, ...(job.kind && { kind: job.kind }) }))
      .finally(() => {
        underWay.delete(working)
        if (underWay.size === atOnce - wave) ring()
      })
    underWay.add(working)
  }

  async function run(signal: AbortSignal) {
    while (!signal.aborted) {
      const free = atOnce - underWay.size
      const jobs = free < wave ? [] : await parts.claim(free).catch(logFailure('outbox'))
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
    /** Wakes the worker: there may be something to do. */
    ring,

    start() {
      stopping.abort()
      stopping = new AbortController()
      giving = new AbortController()
      setMaxListeners(2 * atOnce, giving.signal)
      running = run(stopping.signal)
    },

    /** Takes no more jobs, waits for the running ones, and gives back those that do not end in time: all within `withinMs`. */
    async stop(withinMs: number) {
      stopping.abort()
      ring()
      await within(clock, withinMs * GRACE, running)
      giving.abort()
      await within(clock, withinMs * (1 - GRACE), running)
    },
  }
}

/** Plans to ring once jobs become due at a time. If a ring is planned for soon after that time, it serves them too. */
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

/** The wait before another attempt: about twice as long each time. A random part separates jobs that failed together. */
export function backoffMs(attempts: number, mostMs: number): number {
  const longest = Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), mostMs)
  return longest / 2 + Math.random() * (longest / 2)
}
