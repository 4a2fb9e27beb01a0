import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log, MailJob, MailOutbox } from '../ports.ts'

const POLL_MS = 500
const LEASE_MS = 60_000
const MAX_AT_ONCE = 5

export interface OutboxWorker {
  start(): void
  /** Takes no more jobs, and waits for those under way, at most this long. */
  stop(withinMs: number): Promise<void>
}

export interface OutboxWorkerParts {
  outbox: MailOutbox
  deliver(job: MailJob): Promise<void>
  log: Log
}

/** Claims due jobs, a few at a time, in any number of processes (D20). */
export function createOutboxWorker({ outbox, deliver, log }: OutboxWorkerParts): OutboxWorker {
  const underWay = new Set<Promise<void>>()
  let timer: NodeJS.Timeout | undefined
  let polling: Promise<void> | undefined
  let stopped = true

  async function work(job: MailJob): Promise<void> {
    try {
      await deliver(job)
    } catch (error) {
      // Its lease runs out, and the job is taken again.
      log('error', 'mail job failed', { job: job.id, kind: job.kind, error: String(error) })
    }
  }

  const isFree = () => !stopped && underWay.size < MAX_AT_ONCE

  async function poll(): Promise<void> {
    while (isFree()) {
      const at = new Date()
      const job = await outbox.claim(randomUUID(), at, new Date(at.getTime() + LEASE_MS))
      if (!job) return
      const working = work(job).finally(() => underWay.delete(working))
      underWay.add(working)
    }
  }

  function pollLater() {
    if (stopped) return
    timer = setTimeout(
      () => {
        polling = poll()
          .catch((error: unknown) => log('error', 'mail outbox failed', { error: String(error) }))
          .finally(pollLater)
      },
      POLL_MS * (0.5 + Math.random() / 2),
    )
    timer.unref()
  }

  return {
    start() {
      stopped = false
      pollLater()
    },

    async stop(withinMs) {
      stopped = true
      clearTimeout(timer)
      const finished = Promise.resolve(polling).then(() => Promise.all(underWay))
      await Promise.race([finished, sleep(withinMs, undefined, { ref: false })])
    },
  }
}
