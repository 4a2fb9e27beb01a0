import type { MailPlace, MailSender, SentMail } from './sending.ts'
import { AccountFlowsError, isStoreUnavailable } from '../errors.ts'
import type { GlobalLimit } from './limits.ts'
import { backoffMs } from '../jobs/worker.ts'
import type { MailJob } from '../store/index.ts'
import type { Recipient } from './links.ts'
import { endUnsent, giveUp, isHeld, isInTime, recordFailed, recordSent } from './outcome.ts'
import type { MakeMail } from './render.ts'
import { recipientOf, type JobToSend, type ResolveParts } from './resolve.ts'

export interface DeliverParts extends ResolveParts {
  makeMail: MakeMail
  sender: Pick<MailSender, 'withPlace'>
  globalLimit: Pick<GlobalLimit, 'mayLeave'>
}

const LAST_RETRY_MS = 60_000
const SETTLE_AGAIN_MS = 1_000
/** A mail that leaves this soon after it was made needs no second look at its job. */
const LOOK_AGAIN_MS = 1_000

/**
 * Sends the mail of one resolved job. If it cannot be sent, the job is tried again later, or given up.
 *
 * @param stop - aborts when the job must be given back.
 */
export async function deliverMail(parts: DeliverParts, job: JobToSend, stop: AbortSignal) {
  const sent = await trySending(parts, job, stop).catch((error: unknown) =>
    fail(parts, job, error, stop),
  )
  if (sent) await settle(parts, job, sent, stop)
}

/** `undefined`: there is no mail, or it has to wait. */
async function trySending(parts: DeliverParts, job: JobToSend, stop: AbortSignal) {
  const recipient = await recipientOf(parts, job)
  if (typeof recipient === 'string') return endUnsent(parts, job, recipient)
  const outcome = await parts.sender.withPlace(stop, (place) => send(parts, job, recipient, place))
  if (outcome === undefined) await parts.store.outbox.release(job, job.notBefore)
  return outcome === 'over' ? undefined : outcome
}

// The token is made when a connection is open, or will be in a moment because mails are leaving. It counts only while this worker holds the
// job. `undefined`: the mail has to wait.
async function send(parts: DeliverParts, job: MailJob, recipient: Recipient, place: MailPlace) {
  const { makeMail, globalLimit, clock } = parts
  if (!(await globalLimit.mayLeave())) return undefined
  if (!place.isFlowing) await place.open()
  const made = await makeMail(job, recipient)
  if (made === 'superseded') {
    if (await isHeld(parts, job)) await endUnsent(parts, job, made)
    return 'over'
  }
  // A job always ends before its links do. Either this check sees that end, or the links end after the new one was stored, and include it.
  const lookedAt = clock.now().getTime()
  if (await isHeld(parts, job)) {
    const mail = await made.render()
    const connection = await place.open()
    // If the job ends meanwhile, a mail with a dead link may leave. Another worker can take the job only after the end of the hold.
    const isRecent = Math.abs(clock.now().getTime() - lookedAt) < LOOK_AGAIN_MS
    if (isRecent ? isInTime(parts, job) : await isHeld(parts, job)) return connection.send(mail)
  }
  await made.voidLink()
  return 'over'
}

// The mail has left. A short outage of the database, or an event that cannot be recorded, must not send it again.
async function settle(parts: DeliverParts, job: MailJob, sent: SentMail, stop: AbortSignal) {
  const { store, clock, log } = parts
  for (;;) {
    try {
      await recordSent(parts, job, sent).catch((error: unknown) => {
        if (isStoreUnavailable(error)) throw error
        log('error', 'a sent mail was not recorded', { job: job.id, error: String(error) })
      })
      return await store.outbox.remove(job)
    } catch (error) {
      const mayTryAgain = !stop.aborted && isInTime(parts, job)
      if (!isStoreUnavailable(error) || !mayTryAgain) throw error
    }
    await clock.sleep(SETTLE_AGAIN_MS)
  }
}

async function fail(parts: DeliverParts, job: MailJob, error: unknown, stop: AbortSignal) {
  const { store, clock, log } = parts
  if (isStoreUnavailable(error)) throw error
  if (stop.aborted) return store.outbox.release(job, clock.now(), 'stopped')
  const ours = error instanceof AccountFlowsError ? error : undefined
  const reason = ours?.code ?? 'unexpected_error'
  log(ours ? 'warn' : 'error', String(error), { job: job.id, kind: job.kind, reason })
  await recordFailed(parts, job, reason, ours?.fault)
  const retryAt = new Date(clock.now().getTime() + backoffMs(job.attempts, LAST_RETRY_MS))
  const isPermanent = reason === 'ERR_MAIL_REFUSED' || reason === 'ERR_MAIL_ADDRESS'
  if (!isPermanent && retryAt < job.expiresAt) {
    return store.outbox.release(job, retryAt, reason)
  }
  await giveUp(parts, job, reason)
}
