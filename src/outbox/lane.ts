import type { Clock } from '../clock.ts'
import type { Log, MailJob } from '../ports/index.ts'
import { createBell } from './bell.ts'

const POLL_MS = 500
const AFTER_FAILURE_MS = 2_000

/** Takes jobs of one stage, many at a time, until it is stopped. */
export interface Lane {
  start(): void
  /** There may be something to do. */
  ring(): void
  /** Takes a job that somebody else claimed. `false`: there is no room. */
  accept(job: MailJob): boolean
  /** Takes no more jobs. Resolves when none is under way. */
  stop(): Promise<void>
}

export interface LaneParts {
  /** So many jobs are under way at most. */
  atOnce: number
  claim(most: number): Promise<MailJob[]>
  /** What it throws is logged; the lease of the job runs out, and it is taken again. */
  work(job: MailJob): Promise<void>
  clock: Clock
  log: Log
}

export function createLane({ atOnce, claim, work, clock, log }: LaneParts): Lane {
  const underWay = new Set<Promise<void>>()
  const bell = createBell(clock)
  let stopping = new AbortController()
  let running = Promise.resolve()
  let mayBeMore = false

  // Not each job by itself: the steps of jobs that were claimed together are one command for all of them.
  async function claimed(): Promise<MailJob[] | 'failed'> {
    const free = atOnce - underWay.size
    mayBeMore = free < atOnce / 2
    if (mayBeMore) return []
    try {
      const jobs = await claim(free)
      mayBeMore = jobs.length === free
      return jobs
    } catch (error) {
      log('error', 'mail outbox failed', { error: String(error) })
      return 'failed'
    }
  }

  function begin(job: MailJob) {
    const working = work(job)
      .catch((error: unknown) => {
        log('error', 'mail job failed', { job: job.id, kind: job.kind, error: String(error) })
      })
      .finally(() => {
        underWay.delete(working)
        if (mayBeMore) bell.ring()
      })
    underWay.add(working)
  }

  async function run({ signal }: AbortController) {
    while (!signal.aborted) {
      const jobs = await claimed()
      if (jobs === 'failed') {
        await clock.sleep(AFTER_FAILURE_MS, { signal, ref: false })
      } else if (jobs.length > 0) jobs.forEach(begin)
      else await bell.wait(POLL_MS * (0.5 + Math.random() / 2))
    }
    await Promise.all(underWay)
  }

  return {
    start() {
      stopping.abort()
      stopping = new AbortController()
      running = run(stopping)
    },

    ring: bell.ring,

    accept(job) {
      const hasRoom = underWay.size < atOnce && !stopping.signal.aborted
      if (hasRoom) begin(job)
      return hasRoom
    },

    stop() {
      stopping.abort()
      bell.ring()
      return running
    },
  }
}
