/** Sends the mail of a job: first its link is made, then its text. A mail that cannot be sent is tried again, or given up. */
import { MAIL_KINDS, tokensOf } from '../contract/mail-kinds.ts'
import type { IdentifiedClient } from '../contract/index.ts'
import { hashToken, newToken } from '../crypto/token.ts'
import { AccountFlowsError, isStoreUnavailable } from '../errors.ts'
import { backoffMs } from '../jobs/worker.ts'
import type { MailJob } from '../store/index.ts'
import { orderOf } from '../store/outbox-record.ts'
import { MAIL_FLOWS, type MailLink, type Recipient } from './links.ts'
import {
  endUnsent,
  giveUp,
  isHeld,
  isInTime,
  recordFailed,
  recordSent,
  type JobParts,
} from './outcome.ts'
import { recipientOf, type JobToSend } from './resolve.ts'
import type { MailPlace, OutgoingMail, SentMail } from './sending.ts'

const LAST_RETRY_MS = 60_000
const SETTLE_AGAIN_MS = 1_000
/** A mail that leaves this soon after it was made needs no second look at its job. */
const LOOK_AGAIN_MS = 1_000
/** "This wasn't me" works for the longest time that a notice may wait to be sent, plus a week. */
const NOT_ME_MS = 8 * 24 * 3_600_000

/** @param stop - aborts when the job must be given back. */
export async function deliverMail(parts: JobParts, job: JobToSend, stop: AbortSignal) {
  const sent = await trySending(parts, job, stop).catch((error: unknown) =>
    fail(parts, job, error, stop),
  )
  if (sent) await settle(parts, job, sent, stop)
}

/** `undefined`: there is no mail, or it has to wait. */
async function trySending(parts: JobParts, job: JobToSend, stop: AbortSignal) {
  const recipient = await recipientOf(parts, job)
  if (typeof recipient === 'string') return endUnsent(parts, job, recipient)
  const outcome = await parts.sender.withPlace(stop, (place) => send(parts, job, recipient, place))
  if (outcome === undefined) await parts.store.outbox.release(job, job.notBefore)
  return outcome === 'over' ? undefined : outcome
}

// The token is made when a connection is open, or will be in a moment because mails are leaving. It counts only while this worker holds the
// job. `undefined`: the mail has to wait.
async function send(parts: JobParts, job: MailJob, recipient: Recipient, place: MailPlace) {
  const { store, globalLimit, clock } = parts
  if (!(await globalLimit.mayLeave())) return undefined
  if (!place.isFlowing) await place.open()
  const { parameters, client } = await parts.clients.identify(job.parameters)
  const link = await MAIL_FLOWS[job.kind].mint(parts, job, recipient, parameters)
  if (link === 'superseded') {
    if (await isHeld(parts, job)) await endUnsent(parts, job, link)
    return 'over'
  }
  const { id, ...shown } = link
  // A job always ends before its links do. Either this check sees that end, or the links end after the new one was stored, and include it.
  const lookedAt = clock.now().getTime()
  if (await isHeld(parts, job)) {
    const mail = await writeMail(parts, job, recipient, shown, client)
    const connection = await place.open()
    // If the job ends meanwhile, a mail with a dead link may leave. Another worker can take the job only after the end of the hold.
    const isRecent = Math.abs(clock.now().getTime() - lookedAt) < LOOK_AGAIN_MS
    if (isRecent ? isInTime(parts, job) : await isHeld(parts, job)) return connection.send(mail)
  }
  if (id !== undefined) await tokensOf(store, job.kind)?.revoke({ id }, clock.now())
  return 'over'
}

// Each attempt has a new token for "This wasn't me". The words of the mail are in `views/mails.ts`.
async function writeMail(
  { views, store, oauthUrl, clock }: JobParts,
  job: MailJob,
  { user, email }: Recipient,
  { locale, ...told }: Omit<MailLink, 'id'>,
  client: IdentifiedClient['client'],
): Promise<OutgoingMail> {
  const { kind, requester, requestedAt } = job
  const token = newToken()
  const createdAt = clock.now()
  await store.notMeTokens.issue({
    id: hashToken(token),
    kind,
    userId: user.id,
    email,
    locale,
    ...orderOf(job, job.attempts),
    createdAt,
    purgeAt: new Date(createdAt.getTime() + NOT_ME_MS),
  })
  const locals = {
    ...told,
    ...(client && { clientName: client.clientName }),
    username: user.username,
    notMe: `${oauthUrl}/not-me?token=${token}`,
    at: requestedAt,
    userAgent: requester.userAgent,
    isByAdmin: requester.isAdmin ?? false,
  }
  const rendered = views.mail(MAIL_KINDS[kind].template, locals, { asked: locale })
  return { ...rendered, to: email, kind }
}

// The mail has left. A short outage of the database, or an event that cannot be recorded, must not send it again.
async function settle(parts: JobParts, job: MailJob, sent: SentMail, stop: AbortSignal) {
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

async function fail(parts: JobParts, job: MailJob, error: unknown, stop: AbortSignal) {
  const { store, clock, log } = parts
  if (isStoreUnavailable(error)) throw error
  if (stop.aborted) return store.outbox.release(job, clock.now(), 'stopped')
  const ours = error instanceof AccountFlowsError ? error : undefined
  const reason = ours?.code ?? 'unexpected_error'
  log(ours ? 'warn' : 'error', String(error), { job: job.id, kind: job.kind, reason })
  await recordFailed(parts, job, reason, ours?.fault)
  const retryAt = new Date(clock.now().getTime() + backoffMs(job.attempts, LAST_RETRY_MS))
  const isPermanent = reason === 'ERR_MAIL_REFUSED' || reason === 'ERR_MAIL_ADDRESS'
  if (!isPermanent && retryAt < job.expiresAt) return store.outbox.release(job, retryAt, reason)
  await giveUp(parts, job, reason)
}
