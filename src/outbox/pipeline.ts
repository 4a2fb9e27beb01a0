import type { Clock } from '../clock.ts'
import type { MailJob, MailStage } from '../records/index.ts'
import { createMailBrake } from './brake.ts'
import { deliverMail } from './deliver.ts'
import { endExpired, endUnreadable } from './end.ts'
import { createLane } from './lane.ts'
import type { MailParts } from './parts.ts'
import { resolveJob, SEND_LEASE_MS, type JobToSend } from './resolve.ts'

const WAKE_WITHIN_MS = 250
const RESOLVE_AT_ONCE = 50
const RESOLVE_LEASE_MS = 10_000
/** Those in places, those in line, and those whose end is being written down. */
const SEND_AT_ONCE = 100

/**
 * From an outbox job to a mail that left, in any number of processes. Accounts are looked up apart from sending, so that earlier
 * links die also while the mail server is slow.
 */
export function createMailPipeline(given: Omit<MailParts, 'brake'>) {
  const { store, settings, sender, clock, log } = given
  const { outbox } = store
  const brake = createMailBrake(store.limits, settings, clock.now)
  const parts = { ...given, brake }
  // While there is nowhere to send to, jobs are resolved, and wait.
  const canSend = () => sender.canSend() && brake.isOpen()

  function claim(stage: MailStage, most: number, leaseMs: number): Promise<MailJob[]> {
    const now = clock.now()
    return outbox.claim(stage, most, now, new Date(now.getTime() + leaseMs))
  }

  const resolving = createLane<MailJob>({
    name: 'mail',
    atOnce: RESOLVE_AT_ONCE,
    wave: RESOLVE_AT_ONCE / 2,
    claim: (most) => claim('resolve', most, RESOLVE_LEASE_MS),
    async work(job) {
      const resolved = await resolveJob(parts, job)
      if (!resolved || (canSend() && sending.accept(resolved))) return
      await outbox.release(resolved, resolved.notBefore)
      sending.ring()
    },
    clock,
    log,
  })

  const sending = createLane<JobToSend>({
    name: 'mail',
    atOnce: SEND_AT_ONCE,
    wave: SEND_AT_ONCE / 2,
    claim: async (most) => (canSend() ? claim('send', most, SEND_LEASE_MS) : []),
    work: (job, stop) => deliverMail(parts, job, stop),
    clock,
    log,
  })

  return {
    start() {
      resolving.start()
      sending.start()
    },

    /** Looks for due jobs a random short time after a time; without it, jobs are found within a second. */
    wake: createWaking(clock, resolving.ring),

    /** Ends the jobs that cannot be read, or that nobody sent within their life. */
    async tidy() {
      await endUnreadable(parts)
      for (;;) {
        const jobs = await claim('expire', RESOLVE_AT_ONCE, RESOLVE_LEASE_MS)
        if (jobs.length === 0) return
        await Promise.all(jobs.map((job) => endExpired(parts, job)))
      }
    },

    async stop(withinMs: number) {
      await Promise.all([resolving, sending].map((lane) => lane.stop(withinMs)))
      sender.close()
    },
  }
}

/** One at a time: what is asked for meanwhile is found by the same look, or by the next. */
function createWaking(clock: Clock, ring: () => void): (at: Date) => void {
  let dueAt = 0
  let isWaking = false

  async function ringWhenDue() {
    isWaking = true
    for (let due = 0; due < dueAt;) {
      due = dueAt
      const ms = due - clock.now().getTime() + Math.random() * WAKE_WITHIN_MS
      await clock.sleep(ms, { ref: false })
      ring()
    }
    isWaking = false
  }

  return (at) => {
    dueAt = Math.max(dueAt, at.getTime())
    if (!isWaking) void ringWhenDue()
  }
}
