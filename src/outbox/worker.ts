import type { Clock } from '../clock.ts'
import type { Log } from '../ports/index.ts'
import type { MailJob, MailOutbox, MailStage } from '../records/index.ts'
import { createLane, createLanes } from './lane.ts'
import { createSendTurns, SEND_LEASE_MS, type SendTurn } from './send-turn.ts'

const WAKE_WITHIN_MS = 250
const POLL_MS = 500
const RESOLVE_AT_ONCE = 50
const RESOLVE_LEASE_MS = 10_000
/** Those in the slots, those in line, and those whose end is being written down. */
const SEND_AT_ONCE = 100

export interface OutboxWorkerParts {
  outbox: MailOutbox
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
export function createOutboxWorker(parts: OutboxWorkerParts) {
  const { outbox, canSend, clock, log } = parts
  const turn = createSendTurns(clock, parts.attemptMs)
  const ofMails = { name: 'mail', pollMs: POLL_MS, clock, log }
  const after = (ms: number) => new Date(clock.now().getTime() + ms)

  const claim = (stage: MailStage, most: number, leaseMs: number) =>
    outbox.claim(stage, most, clock.now(), after(leaseMs))

  const resolving = createLane({
    ...ofMails,
    atOnce: RESOLVE_AT_ONCE,
    wave: RESOLVE_AT_ONCE / 2,
    claim: (most) => claim('resolve', most, RESOLVE_LEASE_MS),
    async work(job) {
      const resolved = await parts.resolve(job)
      if (!resolved || (canSend() && sending.accept(resolved))) return
      await outbox.release(resolved, resolved.notBefore)
      sending.ring()
    },
  })

  const sending = createLane({
    ...ofMails,
    atOnce: SEND_AT_ONCE,
    wave: SEND_AT_ONCE / 2,
    claim: async (most) => (canSend() ? claim('send', most, SEND_LEASE_MS) : []),
    work: (job) => parts.send(job, turn(lanes.giveBack())),
  })

  const lanes = createLanes(clock, [resolving, sending], SEND_AT_ONCE)

  return {
    start: lanes.start,
    stop: lanes.stop,

    /** Looks for due jobs a random short time after a time; without it, jobs are found within half a second. */
    wake: createWaking(clock, resolving.ring),

    /** Ends what nobody sent within its life. */
    async expire(): Promise<void> {
      for (;;) {
        const jobs = await claim('expire', RESOLVE_AT_ONCE, RESOLVE_LEASE_MS)
        if (jobs.length === 0) return
        await Promise.all(jobs.map(parts.expire))
      }
    },
  }
}

/** One at a time: what is asked for meanwhile is found by the same look, or by the next. */
function createWaking(clock: Clock, ring: () => void): (at: Date) => void {
  let dueAt = 0
  let isWaking = false

  async function wakeOnce() {
    isWaking = true
    const due = dueAt
    const ms = due - clock.now().getTime() + Math.random() * WAKE_WITHIN_MS
    await clock.sleep(ms, { ref: false })
    isWaking = false
    ring()
    if (dueAt > due) void wakeOnce()
  }

  return (at) => {
    dueAt = Math.max(dueAt, at.getTime())
    if (!isWaking) void wakeOnce()
  }
}
