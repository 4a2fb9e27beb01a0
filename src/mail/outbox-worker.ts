import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log, MailJob, MailOutbox } from '../ports.ts'
import { createBell } from './bell.ts'

const POLL_MS = 500
const WAKE_WITHIN_MS = 250
const LEASE_MS = 60_000
const MAX_AT_ONCE = 5

export interface OutboxWorker {
  start(): void
  /** Looks for due jobs a random short time after `at`; without it, jobs are found within half a second. */
  wake(at: Date): void
  /** Takes no more jobs, and waits for those under way, at most this long. */
  stop(withinMs: number): Promise<void>
}

export interface OutboxWorkerParts {
  outbox: Pick<MailOutbox, 'claim'>
  deliver(job: MailJob): Promise<void>
  log: Log
}

/** Claims due jobs, a few at a time, in any number of processes (D20). */
export function createOutboxWorker({ outbox, deliver, log }: OutboxWorkerParts): OutboxWorker {
  const underWay = new Set<Promise<void>>()
  const bell = createBell()
  let running: Promise<void> = Promise.resolve()
  let stopping = new AbortController()

  async function work(job: MailJob): Promise<void> {
    try {
      await deliver(job)
    } catch (error) {
      // Its lease runs out, and the job is taken again.
      log('error', 'mail job failed', { job: job.id, kind: job.kind, error: String(error) })
    }
  }

  async function claim(): Promise<MailJob | undefined> {
    const at = new Date()
    try {
      return await outbox.claim(randomUUID(), at, new Date(at.getTime() + LEASE_MS))
    } catch (error) {
      log('error', 'mail outbox failed', { error: String(error) })
      return undefined
    }
  }

  async function run({ signal }: AbortController): Promise<void> {
    while (!signal.aborted) {
      const job = underWay.size < MAX_AT_ONCE ? await claim() : undefined
      if (!job) {
        await bell.wait(POLL_MS * (0.5 + Math.random() / 2))
        continue
      }
      const working = work(job).finally(() => {
        underWay.delete(working)
        bell.ring()
      })
      underWay.add(working)
    }
  }

  return {
    start() {
      stopping.abort()
      stopping = new AbortController()
      running = run(stopping)
    },

    wake(at) {
      if (stopping.signal.aborted) return
      const randomly = Math.random() * WAKE_WITHIN_MS
      setTimeout(bell.ring, at.getTime() - Date.now() + randomly).unref()
    },

    async stop(withinMs) {
      stopping.abort()
      bell.ring()
      const finished = running.then(() => Promise.all(underWay))
      await Promise.race([finished, sleep(withinMs, undefined, { ref: false })])
    },
  }
}
