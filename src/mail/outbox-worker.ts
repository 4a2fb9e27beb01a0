import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log, MailJob, MailOutbox, MailStage, SendAttempt } from '../ports.ts'
import { createLane } from './lane.ts'

const WAKE_WITHIN_MS = 250
const RESOLVE_AT_ONCE = 10
const RESOLVE_LEASE_MS = 10_000
/** As many connections as there are to the mail server at most. */
const SEND_AT_ONCE = 5
/** No answer of the mail server takes longer than this; it is less than the lease (D20). */
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
  log: Log
  /** How long one try may take; 30 s by default. */
  attemptMs?: number
}

/**
 * Works on the outbox in any number of processes (D20). Accounts are looked up apart from sending, so that earlier links die
 * also while the mail server is slow.
 */
export function createOutboxWorker(parts: OutboxWorkerParts): OutboxWorker {
  const { outbox, canSend, log, attemptMs = ATTEMPT_MS } = parts
  let giveBack = new AbortController()

  function claim(stage: MailStage, leaseMs: number) {
    const at = Date.now()
    return outbox.claim(stage, randomUUID(), new Date(at), new Date(at + leaseMs))
  }

  const resolving = createLane({
    atOnce: RESOLVE_AT_ONCE,
    claim: () => claim('resolve', RESOLVE_LEASE_MS),
    async work(job) {
      await parts.resolve(job)
      sending.ring()
    },
    log,
  })

  const sending = createLane({
    atOnce: SEND_AT_ONCE,
    claim: async () => (canSend() ? claim('send', SEND_LEASE_MS) : undefined),
    work: (job) => withDeadline(attemptMs, giveBack.signal, (attempt) => parts.send(job, attempt)),
    log,
  })

  return {
    start() {
      giveBack = new AbortController()
      resolving.start()
      sending.start()
    },

    wake(at) {
      const randomly = Math.random() * WAKE_WITHIN_MS
      setTimeout(resolving.ring, at.getTime() - Date.now() + randomly).unref()
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
      const orAfter = (ms: number) => Promise.race([finished, sleep(ms, undefined, { ref: false })])
      await orAfter(withinMs * GRACE)
      giveBack.abort()
      await orAfter(withinMs * (1 - GRACE))
    },
  }
}

// Not `AbortSignal.any` with `AbortSignal.timeout`: in Node 20 the collector takes the time-out before its time.
async function withDeadline(
  withinMs: number,
  stop: AbortSignal,
  work: (attempt: SendAttempt) => Promise<void>,
) {
  const deadline = new AbortController()
  const timer = setTimeout(() => deadline.abort(outOfTime()), withinMs)
  const onStop = () => deadline.abort(stop.reason)
  stop.addEventListener('abort', onStop)
  if (stop.aborted) onStop()
  try {
    await work({
      signal: deadline.signal,
      isStopping: () => stop.aborted,
      leaseUntil: () => new Date(Date.now() + SEND_LEASE_MS),
    })
  } finally {
    clearTimeout(timer)
    stop.removeEventListener('abort', onStop)
  }
}

const outOfTime = () => new DOMException('The attempt took too long', 'TimeoutError')
