/**
 * The queue of mails: takes a mail from its job until it has left or is given up, in any number of processes. This folder never knows a
 * page or the provider.
 */
import type { IdentifiedClient } from '../contract/index.ts'
import { tokensOf } from '../contract/mail-kinds.ts'
import { AccountFlowsError, isStoreUnavailable } from '../errors.ts'
import { backoffMs, createWakeUps, createWorker } from '../jobs/worker.ts'
import type { MailJob, MailStage, NewMailJob } from '../store/index.ts'
import { MAIL_BEHAVIOUR, writeMail } from './make-mail.ts'
import { endUnsent, giveUp, isHeld, isInTime, recordFailed, recordSent } from './outcome.ts'
import type { MailParts } from './parts.ts'
import { recipientOf, resolveJob, SEND_LEASE_MS, type JobToSend } from './resolve.ts'
import { mayHaveArrived, type Delivered, type MailSlot, type Recipient } from './sending.ts'

const RESOLVE_LEASE_MS = 10_000
/** How many jobs are claimed together. */
const BATCH = 50
/** If accounts are slow to find, more look-ups could not end within their lease. */
const LOOK_UP_AT_ONCE = 50
/** Mails with a slot, mails that wait for one, and mails whose outcome is being written. */
const SEND_AT_ONCE = 100
const LAST_RETRY_MS = 60_000
const SETTLE_AGAIN_MS = 1_000
/** A mail that leaves this soon after it was made needs no second look at its job. */
const LOOK_AGAIN_MS = 1_000

/** Looks accounts up even while the mail server is slow, so that earlier links die. */
export function createMailQueue(parts: MailParts) {
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
    const mayLookUp = room >= BATCH / 2
    if (canSend(BATCH)) return claim(mayLookUp ? 'due' : 'send', mayLookUp ? room : BATCH)
    return mayLookUp ? claim('resolve', room) : []
  }

  async function lookUp(job: MailJob) {
    lookingUp += 1
    return resolveJob(parts, job).finally(() => {
      lookingUp -= 1
      if (lookingUp + BATCH / 2 === LOOK_UP_AT_ONCE) worker.wake()
    })
  }

  async function deliver(job: MailJob, stop: AbortSignal): Promise<void> {
    sending += 1
    await deliverMail(parts, job, stop).finally(() => {
      sending -= 1
      // There is room for another batch of waiting mails.
      if (sending + BATCH === SEND_AT_ONCE) worker.wake()
    })
  }

  const worker = createWorker<MailJob>({
    name: 'mail',
    atOnce: LOOK_UP_AT_ONCE + SEND_AT_ONCE,
    minBatch: BATCH / 2,
    claim: claimDue,
    async work(job, stop) {
      const resolved = job.state === 'resolved' ? job : await lookUp(job)
      if (!resolved) return
      if (canSend(1)) await deliver(resolved, stop)
      else await outbox.release(resolved, resolved.notBefore)
    },
    clock,
    log,
  })
  const wakeAt = createWakeUps(clock, worker.wake)

  return {
    start: worker.start,

    /** Adds a job, and wakes the worker once it is due. Without that, a worker finds it within a second. */
    async add(job: NewMailJob) {
      await outbox.add(job)
      wakeAt(job.notBefore)
    },

    /** Ends the jobs that are unreadable, or that no worker sent within their life. */
    tidy: () => tidy(parts, () => claim('expire', BATCH)),

    async stop(withinMs: number) {
      await worker.stop(withinMs)
      sender.close()
    },
  }
}

async function tidy(parts: MailParts, claim: () => Promise<MailJob[]>): Promise<void> {
  const { store, clock, log } = parts
  for (const job of await store.outbox.giveUpUnreadable(clock.now())) {
    const message = 'a mail job is damaged and cannot be read; it is a dead letter now'
    log('error', message, { job, reason: 'unreadable' })
  }
  for (let jobs = await claim(); jobs.length > 0; jobs = await claim())
    await Promise.all(jobs.map((job) => endUnsent(parts, job, 'expired')))
}

/** @param stop - aborts when the job must be given back. */
export async function deliverMail(parts: MailParts, job: JobToSend, stop: AbortSignal) {
  const sent = await trySending(parts, job, stop).catch((error: unknown) =>
    fail(parts, job, error, stop),
  )
  if (sent) await settle(parts, job, sent, stop)
}

/** `undefined`: there is no mail, or it has to wait. */
async function trySending(parts: MailParts, job: JobToSend, stop: AbortSignal) {
  const recipient = await recipientOf(parts, job)
  if (typeof recipient === 'string') return endUnsent(parts, job, recipient)
  // Before a slot is taken: the provider may have to ask a server of the client.
  const genuine = await parts.clients.identify(job.parameters)
  const outcome = await parts.sender.withSlot(stop, (slot) =>
    send(parts, job, recipient, genuine, slot),
  )
  if (outcome === undefined) await parts.store.outbox.release(job, job.notBefore)
  return outcome === 'over' ? undefined : outcome
}

// Makes the link only if the mail can leave soon: a connection is open, or others leave just now. If another worker has the job by then,
// the link is revoked, and nothing leaves. `undefined`: the mail has to wait.
async function send(
  parts: MailParts,
  job: MailJob,
  recipient: Recipient,
  { parameters, client }: IdentifiedClient,
  slot: MailSlot,
) {
  const { store, globalLimit, clock } = parts
  if (!(await globalLimit.mayLeave())) return undefined
  if (!slot.isFlowing) await slot.open()
  const link = await MAIL_BEHAVIOUR[job.kind].makeLink(parts, job, recipient, parameters)
  if (link === 'superseded') {
    if (await isHeld(parts, job)) await endUnsent(parts, job, link)
    return 'over'
  }
  const { id, ...shown } = { ...link, clientName: client?.clientName }
  // `voidEverything` ends jobs first, then links. If the job is still held here, the link was stored in time to end with the others.
  const lookedAt = clock.now().getTime()
  if (await isHeld(parts, job)) {
    const mail = await writeMail(parts, job, recipient, shown)
    await slot.open()
    // If the job ends meanwhile, a mail with a dead link may leave. Another worker can take the job only after the end of the lease.
    const isRecent = Math.abs(clock.now().getTime() - lookedAt) < LOOK_AGAIN_MS
    if (isRecent ? isInTime(parts, job) : await isHeld(parts, job))
      return { ...(await slot.send(mail)), hasLink: shown.link !== '' }
  }
  if (id !== undefined) await tokensOf(store, job.kind)?.expire(id, clock.now())
  return 'over'
}

// The mail has left. An event that cannot be recorded must not send it again, and an outage of the database seldom does.
async function settle(parts: MailParts, job: MailJob, sent: Delivered, stop: AbortSignal) {
  const { store, clock, log } = parts
  for (;;) {
    try {
      await recordSent(parts, job, sent).catch((error: unknown) => {
        if (isStoreUnavailable(error)) throw error
        log('error', 'a sent mail was not recorded', { job: job.id, error: String(error) })
      })
      return await store.outbox.remove(job)
    } catch (error) {
      if (!isStoreUnavailable(error) || stop.aborted) throw error
    }
    await clock.sleep(SETTLE_AGAIN_MS)
  }
}

async function fail(parts: MailParts, job: MailJob, error: unknown, stop: AbortSignal) {
  const { store, clock, log } = parts
  if (isStoreUnavailable(error)) throw error
  if (stop.aborted) return store.outbox.release(job, clock.now(), 'stopped')
  const ours = error instanceof AccountFlowsError ? error : undefined
  const reason = ours?.code ?? 'unexpected_error'
  log(ours ? 'warn' : 'error', String(error), { job: job.id, kind: job.kind, reason })
  await recordFailed(parts, job, reason, ours?.fault)
  const now = clock.now().getTime()
  // Without an answer each attempt may be a copy. So it waits as long again as since the request, or for half of what is left, and the
  // newest link stays.
  const isUnsure = mayHaveArrived(error)
  const [age, left] = [now - job.requestedAt.getTime(), job.expiresAt.getTime() - now]
  const least = isUnsure ? Math.min(age, left / 2) : 0
  const retryAt = new Date(now + Math.max(backoffMs(job.attempts, LAST_RETRY_MS), least))
  const isPermanent = reason === 'ERR_MAIL_REFUSED' || reason === 'ERR_MAIL_ADDRESS'
  if (!isPermanent && retryAt < job.expiresAt) return store.outbox.release(job, retryAt, reason)
  await giveUp(parts, job, reason, isUnsure)
}
