/** The queue of mails. It takes a mail from its job until it has left, in any number of processes. */
import type { MailJob, MailStage, NewMailJob } from '../store/index.ts'
import { createWaking, createWorker } from '../jobs/worker.ts'
import { deliverMail } from './deliver.ts'
import { endUnsent, type JobParts } from './outcome.ts'
import { resolveJob, SEND_LEASE_MS } from './resolve.ts'

const RESOLVE_LEASE_MS = 10_000
/** How many jobs are claimed together. */
const WAVE = 50
/** If accounts are slow to find, more look-ups could not end within their lease. */
const LOOK_UP_AT_ONCE = 50
/** Mails in places, mails in line, and mails whose outcome is being written. */
const SEND_AT_ONCE = 100

/** Looks accounts up even while the mail server is slow, so that earlier links die. */
export function createMailQueue(parts: JobParts) {
  const { store, sender, globalLimit, clock, log } = parts
  const { outbox } = store
  let lookingUp = 0
  let sending = 0
  // While mails cannot leave, or there is no room, jobs are only resolved, and wait.
  const canSend = (count: number) =>
    sending + count <= SEND_AT_ONCE && sender.canSend() && globalLimit.isOpen()

  function claim(stage: MailStage, most: number): Promise<MailJob[]> {
    const now = clock.now()
    const after = (ms: number) => new Date(now.getTime() + ms)
    return outbox.claim(stage, most, now, after(RESOLVE_LEASE_MS), after(SEND_LEASE_MS))
  }

  /** Slow look-ups do not hold up mails, and slow mails do not hold up look-ups. */
  async function claimDue(): Promise<MailJob[]> {
    const room = LOOK_UP_AT_ONCE - lookingUp
    const mayLookUp = room >= WAVE / 2
    if (canSend(WAVE)) return claim(mayLookUp ? 'due' : 'send', mayLookUp ? room : WAVE)
    return mayLookUp ? claim('resolve', room) : []
  }

  async function lookUp(job: MailJob) {
    lookingUp += 1
    const held = await resolveJob(parts, job).finally(() => (lookingUp -= 1))
    if (lookingUp + WAVE / 2 === LOOK_UP_AT_ONCE) worker.ring()
    return held
  }

  async function send(job: MailJob, stop: AbortSignal): Promise<void> {
    sending += 1
    await deliverMail(parts, job, stop).finally(() => (sending -= 1))
    // There is room for another wave of waiting mails.
    if (sending + WAVE === SEND_AT_ONCE) worker.ring()
  }

  const worker = createWorker<MailJob>({
    name: 'mail',
    atOnce: LOOK_UP_AT_ONCE + SEND_AT_ONCE,
    wave: WAVE / 2,
    claim: claimDue,
    async work(job, stop) {
      const held = job.state === 'resolved' ? job : await lookUp(job)
      if (!held) return
      if (canSend(1)) await send(held, stop)
      else await outbox.release(held, held.notBefore)
    },
    clock,
    log,
  })
  const wakeAt = createWaking(clock, worker.ring)

  return {
    start: worker.start,

    /** Adds a job, and wakes the worker once it is due. Without that, a worker finds it within a second. */
    async add(job: NewMailJob) {
      await outbox.add(job)
      wakeAt(job.notBefore)
    },

    /** Ends the jobs that are unreadable, or that no worker sent within their life. */
    tidy: () => tidy(parts, () => claim('expire', WAVE)),

    async stop(withinMs: number) {
      await worker.stop(withinMs)
      sender.close()
    },
  }
}

async function tidy(parts: JobParts, claim: () => Promise<MailJob[]>): Promise<void> {
  const { store, clock, log } = parts
  for (const job of await store.outbox.giveUpUnreadable(clock.now())) {
    const message = 'a mail job is damaged and cannot be read; it is a dead letter now'
    log('error', message, { job, reason: 'unreadable' })
  }
  for (;;) {
    const jobs = await claim()
    if (jobs.length === 0) return
    await Promise.all(jobs.map((job) => endUnsent(parts, job, 'expired')))
  }
}
