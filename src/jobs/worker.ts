/**
 * A worker takes jobs of a queue, many at a time, and looks for more. It does not know what its jobs are about. This folder has what runs
 * behind requests: it notifies clients, and tidies. `mail/` has a worker of its own.
 */
import { setMaxListeners } from 'node:events'
import { within, type Clock } from '../clock.ts'
import type { Log } from '../contract/index.ts'

/** How long a worker waits when the store cannot be reached, or is overloaded. Nothing ends this wait. */
const AFTER_FAILURE_MS = 2_000
/** A worker looks for jobs at least this often, even if nothing wakes it. */
const POLL_MS = 1_000
/** The part of the stopping time in which running jobs may end by themselves, before they are given back. */
const GRACE = 0.5
const FIRST_RETRY_MS = 2_000
const WAKE_WITHIN_MS = 250

interface WorkerParts<J> {
  /** The name in the log, such as `mail`. */
  name: string
  atOnce: number
  /** The worker claims more once it has room for this many. The steps of jobs that were claimed together share one command. */
  minBatch: number
  claim(most: number): Promise<J[]>
  /** An error is logged; the lease of the job runs out, and a worker takes it again. `stop` aborts when the job must be given back. */
  work(job: J, stop: AbortSignal): Promise<void>
  clock: Clock
  log: Log
}

export function createWorker<J extends { id: string; kind?: string }>(parts: WorkerParts<J>) {
  const { name, atOnce, minBatch, clock, log } = parts
  const underWay = new Set<Promise<void>>()
  let wakeUp = new AbortController()
  /** Ends the taking of jobs. */
  let stopping = new AbortController()
  /** Gives back the running jobs. */
  let givingBack = new AbortController()
  let running = Promise.resolve()

  const wake = () => wakeUp.abort('woken')

  const logFailure =
    (what: string, of: object = {}) =>
    (error: unknown): undefined => {
      log('error', `${name} ${what} failed`, { ...of, error: String(error) })
    }

  function begin(job: J) {
    const working = parts
      .work(job, givingBack.signal)
      .catch(logFailure('job', { job: job.id, ...(job.kind && { kind: job.kind }) }))
      .finally(() => {
        underWay.delete(working)
        if (underWay.size === atOnce - minBatch) wake()
      })
    underWay.add(working)
  }

  async function run(signal: AbortSignal) {
    while (!signal.aborted) {
      const free = atOnce - underWay.size
      const jobs = free < minBatch ? [] : await parts.claim(free).catch(logFailure('claim'))
      jobs?.forEach(begin)
      if (!jobs) await clock.sleep(AFTER_FAILURE_MS, { signal, ref: false })
      else if (jobs.length === 0) {
        const ms = POLL_MS * (0.5 + Math.random() / 2)
        await clock.sleep(ms, { signal: wakeUp.signal, ref: false })
        wakeUp = new AbortController()
      }
    }
    await Promise.all(underWay)
  }

  return {
    wake,

    start() {
      stopping.abort()
      stopping = new AbortController()
      givingBack = new AbortController()
      setMaxListeners(2 * atOnce, givingBack.signal)
      running = run(stopping.signal)
    },

    /** Takes no more jobs, waits for the running ones, and gives back those that do not end in time: all within `withinMs`. */
    async stop(withinMs: number) {
      stopping.abort()
      wake()
      await within(clock, withinMs * GRACE, running)
      givingBack.abort()
      await within(clock, withinMs * (1 - GRACE), running)
    },
  }
}

/** Plans a wake-up for jobs that become due at a time. If one is planned for soon after that time, it serves them too. */
export function createWakeUps(clock: Clock, wake: () => void): (at: Date) => void {
  let planned: number | undefined

  async function look(inMs: number) {
    await clock.sleep(inMs, { ref: false })
    planned = undefined
    wake()
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
