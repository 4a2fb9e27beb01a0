/** The outcome of a mail job: its audit events, each recorded once however often the job is taken; and how it ends. */
import { MAX_AUDITED_LENGTH } from '../contract/audit.ts'
import type { Clock } from '../clock.ts'
import type { AuditEvent, Log, MailFailure, MailKind, NoMail } from '../contract/index.ts'
import type { SentMail } from './sending.ts'
import { MAIL_KINDS, tokensOf, type TokenPart } from '../contract/mail-kinds.ts'
import { foldTyped } from '../contract/users.ts'
import type { MailFault } from '../errors.ts'
import type { AccountFlowsStore, MailJob } from '../store/index.ts'
import { orderOf } from '../store/outbox-record.ts'

export interface JobParts {
  store: Pick<AccountFlowsStore, 'outbox' | 'audit' | TokenPart>
  /** Stands for an account, a mailbox or a typed text, and reveals nothing about it. */
  keyedHash(text: string): string
  audit(event: AuditEvent): Promise<void>
  clock: Clock
  log: Log
}

/** Reasons that an admin can fix, or should know. Other reasons are ordinary, and leave no dead letter. */
const DEAD_LETTERS: ReadonlySet<NoMail> = new Set<NoMail>([
  'expired',
  'account_gone',
  'disabled',
  'no_address',
  'bad_address',
  'no_password',
])

/** @param reason - why there will be no mail. */
export async function recordRequested(
  { audit, keyedHash }: JobParts,
  job: MailJob,
  reason?: NoMail,
) {
  const { flow, isNotice } = MAIL_KINDS[job.kind]
  if (isNotice) return
  const event = { ...about(job), at: job.requestedAt }
  await audit({
    ...event,
    id: `requested:${job.id}`,
    type: `${flow}_requested`,
    ...(reason !== undefined && { reason }),
    ...(job.accountId === undefined &&
      job.identifier !== undefined && {
        details: { identifier_hash: keyedHash(foldTyped(job.identifier)) },
      }),
  })
  // If a form asks again for a login, the event was recorded when the login was blocked.
  if (job.pendingLoginId === undefined || job.isOfForm) return
  await audit({ ...event, id: `blocked:${job.id}`, type: 'email_login_blocked' })
}

export function recordSent({ audit, clock }: JobParts, job: MailJob, sent: SentMail) {
  const { messageId, queueId } = sent
  const known = {
    ...(messageId !== undefined && { message_id: messageId }),
    ...(queueId !== undefined && { queue_id: queueId }),
  }
  return audit({
    ...about(job),
    ...detailsOf(job.kind, known),
    id: sentId(job),
    type: `${MAIL_KINDS[job.kind].flow}_mail_sent`,
    at: clock.now(),
  })
}

/** Whether the mail left earlier, and its process died before it could remove the job. */
export async function wasSent({ store }: JobParts, job: MailJob): Promise<boolean> {
  return (await store.audit.list({ id: sentId(job), limit: 1 })).length > 0
}

const sentId = ({ id }: MailJob) => `mail_sent:${id}`

export function recordFailed(
  { audit, clock }: JobParts,
  job: MailJob,
  reason: MailFailure,
  fault?: MailFault,
): Promise<void> {
  return audit({
    ...about(job),
    ...detailsOf(job.kind, { ...fault }),
    id: `mail_failed:${job.id}:${job.attempts}:${reason}`,
    type: `${MAIL_KINDS[job.kind].flow}_mail_failed`,
    at: clock.now(),
    reason,
  })
}

function about({ parameters, requester, accountId }: MailJob) {
  return { accountId, clientId: parameters.clientId?.slice(0, MAX_AUDITED_LENGTH), ...requester }
}

// A notice uses the event types of its flow; `details.mail` tells it apart.
function detailsOf<Known extends object>(kind: MailKind, known: Known) {
  const details = { ...(MAIL_KINDS[kind].isNotice && { mail: kind }), ...known }
  return Object.keys(details).length > 0 ? { details } : {}
}

/** Whether this worker still holds the job. */
export async function isHeld(parts: JobParts, job: MailJob): Promise<boolean> {
  return (await parts.store.outbox.isHeld(job)) && isInTime(parts, job)
}

/** After the end of the hold, another worker may take the job at any moment. */
export const isInTime = ({ clock }: JobParts, job: MailJob) => clock.now() < job.availableAt

/** Ends a job that gets no mail. */
export async function endJob(parts: JobParts, job: MailJob, reason: NoMail): Promise<undefined> {
  if (!DEAD_LETTERS.has(reason)) await parts.store.outbox.remove(job)
  else if (await giveUp(parts, job, reason)) {
    const { id, kind } = job
    parts.log('warn', 'a request got no mail', { job: id, kind, reason })
  }
}

/** Records why, and ends the job. For a job whose request is recorded without a reason. */
export async function endUnsent(parts: JobParts, job: MailJob, reason: NoMail): Promise<undefined> {
  // Its process may have sent the mail, and died before it could remove the job.
  const why = reason === 'expired' && (await wasSent(parts, job)) ? 'sent_before' : reason
  if (why !== 'sent_before') await recordFailed(parts, job, why)
  await endJob(parts, job, why)
}

/** Makes a dead letter of a job, and voids its links up to this attempt. `false`: another worker holds it. */
export async function giveUp(parts: JobParts, job: MailJob, reason: string): Promise<boolean> {
  const { kind, accountId: userId } = job
  const now = parts.clock.now()
  // The links go first: no worker takes a dead letter up again.
  if (userId !== undefined)
    await tokensOf(parts.store, kind)?.revoke({ userId, upTo: orderOf(job, job.attempts) }, now)
  return parts.store.outbox.giveUp(job, now, reason)
}
