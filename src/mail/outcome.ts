/** The outcome of a mail job: its audit events, each recorded once however often the job is taken; and how it ends. */
import { MAX_AUDITED_LENGTH } from '../contract/audit.ts'
import type { MailFailure, MailKind, NoMail } from '../contract/index.ts'
import { isLinkKind, MAIL_KINDS, tokensOf } from '../contract/mail-kinds.ts'
import { foldTyped } from '../contract/users.ts'
import type { MailFault } from '../errors.ts'
import type { MailJob } from '../store/index.ts'
import { defined } from '../store/kind.ts'
import { orderOf } from '../store/outbox-record.ts'
import type { MailParts } from './parts.ts'
import type { Delivered } from './sending.ts'

/** Reasons that an admin can fix, or should know. Other reasons are ordinary, and leave no dead letter. */
const DEAD_LETTERS = new Set<NoMail>([
  'expired',
  'account_gone',
  'disabled',
  'no_address',
  'bad_address',
  'no_password',
])

/** @param reason - why there will be no mail. */
export async function recordRequested(parts: MailParts, job: MailJob, reason?: NoMail) {
  const { id, identifier, accountId, pendingLoginId } = job
  const { flow, link } = MAIL_KINDS[job.kind]
  if (!link) return
  const event = { ...about(job), at: job.requestedAt }
  const isTyped = accountId === undefined && identifier !== undefined
  await parts.audit({
    ...event,
    id: `requested:${id}`,
    type: `${flow}_requested`,
    ...(reason !== undefined && { reason }),
    ...(isTyped && { details: { identifier_hash: parts.keyed.keyedHash(foldTyped(identifier)) } }),
  })
  // If a form asks again for a login, the event was recorded when the login was blocked.
  if (pendingLoginId === undefined || job.keepsId) return
  await parts.audit({ ...event, id: `blocked:${id}`, type: 'email_login_blocked' })
}

export function recordSent({ audit, clock }: MailParts, job: MailJob, delivered: Delivered) {
  const { messageId: message_id, queueId: queue_id, hasLink } = delivered
  const link = hasLink ? undefined : 'none'
  return audit({
    ...about(job),
    ...detailsOf(job.kind, { message_id, queue_id, link } as const),
    id: sentId(job),
    type: `${MAIL_KINDS[job.kind].flow}_mail_sent`,
    at: clock.now(),
  })
}

/** Whether the mail left earlier, and its process died before it could remove the job. */
export async function wasSent({ store }: MailParts, job: MailJob): Promise<boolean> {
  return (await store.audit.list({ id: sentId(job), limit: 1 })).length > 0
}

const sentId = ({ id }: MailJob) => `mail_sent:${id}`

export const recordFailed = (
  { audit, clock }: MailParts,
  job: MailJob,
  reason: MailFailure,
  fault?: MailFault,
) =>
  audit({
    ...about(job),
    ...detailsOf(job.kind, { ...fault }),
    id: `mail_failed:${job.id}:${job.attempts}:${reason}`,
    type: `${MAIL_KINDS[job.kind].flow}_mail_failed`,
    at: clock.now(),
    reason,
  })

function about({ parameters, requester, accountId }: MailJob) {
  return { accountId, clientId: parameters.clientId?.slice(0, MAX_AUDITED_LENGTH), ...requester }
}

// A notice uses the event types of its flow; `details.mail` tells it apart.
function detailsOf<Known extends object>(kind: MailKind, known: Known) {
  const details = defined({ mail: isLinkKind(kind) ? undefined : kind, ...known })
  return Object.keys(details).length > 0 ? { details } : {}
}

export async function isHeld(parts: MailParts, job: MailJob): Promise<boolean> {
  return (await parts.store.outbox.isHeld(job)) && isInTime(parts, job)
}

/** After the end of its lease, another worker may take the job at any moment. */
export const isInTime = ({ clock }: MailParts, job: MailJob) => clock.now() < job.availableAt

export async function endJob(parts: MailParts, job: MailJob, reason: NoMail): Promise<undefined> {
  if (!DEAD_LETTERS.has(reason)) await parts.store.outbox.remove(job)
  else if (await giveUp(parts, job, reason))
    parts.log('warn', 'a request got no mail', { job: job.id, kind: job.kind, reason })
}

/** Records why, and ends the job. For a job whose request is recorded without a reason. */
export async function endUnsent(parts: MailParts, job: MailJob, reason: NoMail) {
  // Its process may have sent the mail, and died before it could remove the job.
  const why = reason === 'expired' && (await wasSent(parts, job)) ? 'sent_before' : reason
  if (why !== 'sent_before') await recordFailed(parts, job, why)
  return endJob(parts, job, why)
}

/** Makes a dead letter of a job, and voids its links up to this attempt, unless the mail of this one may have arrived. `false`: another worker has it. */
export async function giveUp(
  parts: MailParts,
  job: MailJob,
  reason: string,
  mayHaveArrived = false,
): Promise<boolean> {
  const { kind, accountId: userId } = job
  const now = parts.clock.now()
  // The links go first: no worker takes a dead letter up again.
  if (userId !== undefined && !mayHaveArrived)
    await tokensOf(parts.store, kind)?.revoke({ userId, upTo: orderOf(job, job.attempts) }, now)
  return parts.store.outbox.giveUp(job, now, reason)
}
