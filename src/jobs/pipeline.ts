import type { Clock } from '../clock.ts'
import type { MailJob, MailStage } from '../store/index.ts'
import { createMailBrake } from './limits.ts'
import { deliverMail } from '../mail/deliver.ts'
import { endUnreadable, endUnsent } from '../mail/outcome.ts'
import { createLane } from './worker.ts'
import type { MailParts } from './parts.ts'
import { resolveJob, SEND_LEASE_MS, type JobToSend } from '../mail/resolve.ts'

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

  const lane = { name: 'mail', clock, log }
  const resolving = createLane<MailJob>({
    ...lane,
    atOnce: RESOLVE_AT_ONCE,
    wave: RESOLVE_AT_ONCE / 2,
    claim: (most) => claim('resolve', most, RESOLVE_LEASE_MS),
    async work(job) {
      const resolved = await resolveJob(parts, job)
      if (!resolved || (canSend() && sending.accept(resolved))) return
      await outbox.release(resolved, resolved.notBefore)
      sending.ring()
    },
  })

  const sending = createLane<JobToSend>({
    ...lane,
    atOnce: SEND_AT_ONCE,
    wave: SEND_AT_ONCE / 2,
    claim: async (most) => (canSend() ? claim('send', most, SEND_LEASE_MS) : []),
    work: (job, stop) => deliverMail(parts, job, stop),
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
        await Promise.all(jobs.map((job) => endUnsent(parts, job, 'expired')))
      }
    },

    async stop(withinMs: number) {
      await Promise.all([resolving, sending].map((lane) => lane.stop(withinMs)))
      sender.close()
    },
  }
}

/** Plans a look at jobs that are due at a time. One that is planned for soon after it already finds them too. */
export function createWaking(clock: Clock, ring: () => void): (at: Date) => void {
  let planned: number | undefined

  async function look(inMs: number) {
    await clock.sleep(inMs, { ref: false })
    planned = undefined
    ring()
  }

  return (at) => {
    const due = at.getTime()
    if (planned !== undefined && due <= planned && planned <= due + WAKE_WITHIN_MS) return
    planned = due + Math.random() * WAKE_WITHIN_MS
    void look(planned - clock.now().getTime())
  }
}
