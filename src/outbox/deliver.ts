import { AccountFlowsError, isStoreUnavailable } from '../errors.ts'
import type { SentMail } from '../ports/index.ts'
import type { MailJob } from '../records/index.ts'
import { backoffMs } from './backoff.ts'
import { endUnsent, giveUp, isHeld } from './end.ts'
import { recordFailed, recordSent } from './events.ts'
import type { Recipient } from './mail-flow.ts'
import type { OutboxParts } from './parts.ts'
import { renderMail } from './render.ts'
import { recipientOf } from './resolve.ts'
import type { SendTurn } from './send-turn.ts'

const LAST_RETRY_MS = 60_000
const SETTLE_AGAIN_MS = 1_000

/** Sends the mail of one resolved job: what cannot be sent is tried again, or given up. */
export async function deliverMail(parts: OutboxParts, job: MailJob, turn: SendTurn): Promise<void> {
  const sent = await trySending(parts, job, turn)
  if (sent) await settle(parts, job, sent, turn)
}

/** `undefined`: it did not leave, and what becomes of the job is written down. */
async function trySending(
  parts: OutboxParts,
  job: MailJob,
  turn: SendTurn,
): Promise<SentMail | undefined> {
  try {
    const recipient = await recipientOf(parts, job)
    if (typeof recipient === 'string') {
      await endUnsent(parts, job, recipient)
      return undefined
    }
    const outcome = await turn.take((signal, isFlowing) =>
      send(parts, job, recipient, signal, isFlowing),
    )
    if (outcome === undefined) await parts.store.outbox.release(job, job.notBefore)
    return outcome === 'over' ? undefined : outcome
  } catch (error) {
    await fail(parts, job, error, turn)
    return undefined
  }
}

// The token is made when a connection is free, or will be in a moment as mails leave. It counts only while this worker holds
// the job. `undefined`: it has to wait.
async function send(
  parts: OutboxParts,
  job: MailJob,
  recipient: Recipient,
  signal: AbortSignal,
  isFlowing: boolean,
): Promise<SentMail | 'over' | undefined> {
  const { flows, brake, sender } = parts
  const settings = parts.settings()
  if (!(await brake.mayLeave())) return undefined
  const flow = flows[job.kind]
  let connection = isFlowing ? undefined : await sender.connect(settings, signal)
  try {
    const link = await flow.mint(job, recipient, settings)
    if (link === 'superseded') {
      if (await isHeld(parts, job)) await endUnsent(parts, job, link)
      return 'over'
    }
    const mail = await renderMail(parts, job, recipient, link)
    connection ??= await sender.connect(settings, signal)
    // Right before it leaves, and after its link is made. What ends a job ends its links next: this one may come too late for that.
    if (await isHeld(parts, job)) return await connection.send(mail)
    await flow.revoke?.(link)
    return 'over'
  } finally {
    connection?.release()
  }
}

// It left: it is not sent again because the database is away for a moment, or because the event cannot be recorded.
async function settle(
  parts: OutboxParts,
  job: MailJob,
  sent: SentMail,
  turn: SendTurn,
): Promise<void> {
  const { store, clock } = parts
  let isRecorded = false
  for (;;) {
    try {
      isRecorded ||= await recorded(parts, job, sent)
      await store.outbox.remove(job)
      return
    } catch (error) {
      const mayTryAgain = !turn.isStopping() && clock.now() < job.availableAt
      if (!isStoreUnavailable(error) || !mayTryAgain) throw error
    }
    await clock.sleep(SETTLE_AGAIN_MS)
  }
}

async function recorded(parts: OutboxParts, job: MailJob, sent: SentMail): Promise<true> {
  try {
    await recordSent(parts, job, sent)
  } catch (error) {
    if (isStoreUnavailable(error)) throw error
    parts.log('error', 'a sent mail was not recorded', { job: job.id, error: String(error) })
  }
  return true
}

async function fail(parts: OutboxParts, job: MailJob, error: unknown, turn: SendTurn) {
  const { store, clock, log } = parts
  if (isStoreUnavailable(error)) throw error
  if (turn.isStopping()) return store.outbox.release(job, clock.now(), 'stopped')
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
