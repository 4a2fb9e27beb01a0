import type { Clock } from '../clock.ts'
import type { Log, MailJob } from '../ports/index.ts'
import { createBell } from './bell.ts'

const POLL_MS = 500
const AFTER_FAILURE_MS = 2_000

/** Takes jobs of one stage, a few at a time, until it is stopped. */
export interface Lane {
  start(): void
  /** There may be something to do. */
  ring(): void
  /** Takes no more jobs. Resolves when none is under way. */
  stop(): Promise<void>
}

export interface LaneParts {
  atOnce: number
  /** `undefined`: there is none. */
  claim(): Promise<MailJob | undefined>
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

  async function claimed(): Promise<MailJob | undefined | 'failed'> {
    try {
      return await claim()
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
        bell.ring()
      })
    underWay.add(working)
  }

  async function run({ signal }: AbortController) {
    while (!signal.aborted) {
      const job = underWay.size < atOnce ? await claimed() : undefined
      if (job === 'failed') {
        await clock.sleep(AFTER_FAILURE_MS, { signal, ref: false })
      } else if (job) begin(job)
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

    stop() {
      stopping.abort()
      bell.ring()
      return running
    },
  }
}
