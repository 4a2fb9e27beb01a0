import { setMaxListeners } from 'node:events'
import { timeout, within, type Clock } from '../clock.ts'
import type { Log, MailJob, MailOutbox, MailStage } from '../ports/index.ts'
import { createLane } from './lane.ts'
import { createSlots } from './slots.ts'

const WAKE_WITHIN_MS = 250
const RESOLVE_AT_ONCE = 50
const RESOLVE_LEASE_MS = 10_000
/** As many connections as there are to the mail server at most. */
const CONNECTIONS = 5
/** So many mails are made ready at once while others leave. */
const READY_AT_ONCE = 30
/** So many of them at a time: their tokens are stored by one command. */
const WAVE = 10
/** Mails leave, if one did so long ago at most; less than a request waits before it is taken. */
const FLOWING_MS = 40
/** Those in the slots, those in line, and those whose end is being written down. */
const SEND_AT_ONCE = 100
/** A mail that no connection got free for belongs to whoever has one. */
const IN_LINE_MS = 20_000
/** No answer of the mail server takes longer than this; together with the time in line it is less than the lease. */
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

/** One mail's turn at the few connections. */
export interface SendTurn {
  /**
   * Sends once a connection is free, or will be in a moment, as mails leave. The signal is aborted at the deadline of the attempt, and
   * when the worker cannot wait for it any more. `undefined`: none got free in time, or the worker stops; nothing was tried.
   */
  take<Sent>(
    send: (signal: AbortSignal, isFlowing: boolean) => Promise<Sent>,
  ): Promise<Sent | undefined>
  /** Whether the job is to be given back because the worker stops. */
  isStopping(): boolean
}

export interface OutboxWorkerParts {
  outbox: Pick<MailOutbox, 'claim' | 'release'>
  /** Answers the job, held to be sent. `undefined`: it is over. */
  resolve(job: MailJob): Promise<MailJob | undefined>
  send(job: MailJob, turn: SendTurn): Promise<void>
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
  const slots = createSlots(clock, () =>
    isFlowing() ? { most: READY_AT_ONCE, wave: WAVE } : { most: CONNECTIONS, wave: 1 },
  )
  let lastSentAt = -FLOWING_MS
  const isFlowing = () => Math.abs(clock.now().getTime() - lastSentAt) < FLOWING_MS
  let giveBack = new AbortController()
  const after = (ms: number) => new Date(clock.now().getTime() + ms)

  const claim = (stage: MailStage, most: number, leaseMs: number) =>
    outbox.claim(stage, most, clock.now(), after(leaseMs))

  const resolving = createLane({
    atOnce: RESOLVE_AT_ONCE,
    claim: (most) => claim('resolve', most, RESOLVE_LEASE_MS),
    async work(job) {
      const resolved = await parts.resolve(job)
      if (!resolved || (canSend() && sending.accept(resolved))) return
      await outbox.release(resolved, resolved.notBefore)
      sending.ring()
    },
    clock,
    log,
  })

  const sending = createLane({
    atOnce: SEND_AT_ONCE,
    claim: async (most) => (canSend() ? claim('send', most, SEND_LEASE_MS) : []),
    work: (job) => parts.send(job, turn(giveBack.signal)),
    clock,
    log,
  })

  const turn = (stop: AbortSignal): SendTurn => ({
    isStopping: () => stop.aborted,

    async take(send) {
      if (!(await slots.enter(IN_LINE_MS, stop))) return undefined
      const attempt = new AbortController()
      const { signal: late, cancel } = timeout(clock, attemptMs)
      // Not `AbortSignal.any`: in Node 20 the collector takes a time-out before its time.
      for (const end of [stop, late]) {
        end.addEventListener('abort', () => attempt.abort(end.reason), { signal: attempt.signal })
        if (end.aborted) attempt.abort(end.reason)
      }
      try {
        const sent = await send(attempt.signal, isFlowing())
        if (sent === 'sent') lastSentAt = clock.now().getTime()
        return sent
      } catch (error) {
        lastSentAt = -FLOWING_MS
        throw error
      } finally {
        cancel()
        attempt.abort('over')
        slots.leave()
      }
    },
  })

  return {
    start() {
      giveBack = new AbortController()
      setMaxListeners(2 * SEND_AT_ONCE, giveBack.signal)
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
        const jobs = await claim('expire', RESOLVE_AT_ONCE, RESOLVE_LEASE_MS)
        if (jobs.length === 0) return
        await Promise.all(jobs.map(parts.expire))
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
