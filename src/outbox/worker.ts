import { randomUUID } from 'node:crypto'
import { timeout, within, type Clock } from '../clock.ts'
import type { Log, MailJob, MailOutbox, MailStage, SendAttempt } from '../ports/index.ts'
import { createLane } from './lane.ts'

const WAKE_WITHIN_MS = 250
const RESOLVE_AT_ONCE = 10
const RESOLVE_LEASE_MS = 10_000
/** As many connections as there are to the mail server at most. */
const SEND_AT_ONCE = 5
/** No answer of the mail server takes longer than this; it is less than the lease. */
const ATTEMPT_MS = 30_000
const SEND_LEASE_MS = 60_000
/** Of the time to stop, what mails under way have to leave before they are given back. */
const GRACE = 0.5

export interface OutboxWorker {
  start(): void
  /** Looks for due jobs a random short time after `at`; without it, jobs are found within half a second. */
  wake(at: Date): void
  /** Ends what nobody sent within its life. */
  expire(): Promise<void>
  /** Takes no more jobs, waits for those under way, and gives back what does not leave in time: all within `withinMs`. */
  stop(withinMs: number): Promise<void>
}

export interface OutboxWorkerParts {
  outbox: Pick<MailOutbox, 'claim'>
  resolve(job: MailJob): Promise<void>
  send(job: MailJob, attempt: SendAttempt): Promise<void>
  expire(job: MailJob): Promise<void>
  /** False while there is nowhere to send to: jobs are resolved, and wait. */
  canSend(): boolean
  clock: Clock
  log: Log
  /** How long one try may take; 30 s by default. */
  attemptMs?: number
}

/**
 * Works on the outbox in any number of processes. Accounts are looked up apart from sending, so that earlier links die
 * also while the mail server is slow.
 */
export function createOutboxWorker(parts: OutboxWorkerParts): OutboxWorker {
  const { outbox, canSend, clock, log, attemptMs = ATTEMPT_MS } = parts
  let giveBack = new AbortController()

  function claim(stage: MailStage, leaseMs: number) {
    const at = clock.now()
    return outbox.claim(stage, randomUUID(), at, new Date(at.getTime() + leaseMs))
  }

  const resolving = createLane({
    atOnce: RESOLVE_AT_ONCE,
    claim: () => claim('resolve', RESOLVE_LEASE_MS),
    async work(job) {
      await parts.resolve(job)
      sending.ring()
    },
    clock,
    log,
  })

  const sending = createLane({
    atOnce: SEND_AT_ONCE,
    claim: async () => (canSend() ? claim('send', SEND_LEASE_MS) : undefined),
    work: trySending,
    clock,
    log,
  })

  // Not `AbortSignal.any`: in Node 20 the collector takes a time-out before its time.
  async function trySending(job: MailJob) {
    const stop = giveBack.signal
    const attempt = new AbortController()
    const { signal: late, cancel } = timeout(clock, attemptMs)
    for (const end of [stop, late]) {
      end.addEventListener('abort', () => attempt.abort(end.reason), { signal: attempt.signal })
      if (end.aborted) attempt.abort(end.reason)
    }
    try {
      await parts.send(job, {
        signal: attempt.signal,
        isStopping: () => stop.aborted,
        leaseUntil: () => new Date(clock.now().getTime() + SEND_LEASE_MS),
      })
    } finally {
      cancel()
      attempt.abort()
    }
  }

  return {
    start() {
      giveBack = new AbortController()
      resolving.start()
      sending.start()
    },

    wake(at) {
      const randomly = Math.random() * WAKE_WITHIN_MS
      const ms = at.getTime() - clock.now().getTime() + randomly
      void clock.sleep(ms, { ref: false }).then(resolving.ring)
    },

    async expire() {
      for (;;) {
        const job = await claim('expire', RESOLVE_LEASE_MS)
        if (!job) return
        await parts.expire(job)
      }
    },

    async stop(withinMs) {
      const finished = Promise.all([resolving.stop(), sending.stop()])
      await within(clock, withinMs * GRACE, finished)
      giveBack.abort()
      await within(clock, withinMs * (1 - GRACE), finished)
    },
  }
}
