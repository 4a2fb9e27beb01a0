/** What the audit log learns of a mail job. Each event is recorded once, however often the job is taken. */
import type { MailFault } from '../errors.ts'
import type { MailFailure, MailKind, NoMail } from '../contract/index.ts'
import { MAIL_KINDS } from '../contract/mail-kinds.ts'
import { foldTyped } from '../contract/users.ts'
import type { MailJob } from '../store/index.ts'
import type { MailParts } from '../jobs/parts.ts'
import type { SentMail } from './sending.ts'

/** Anybody may have written it. */
const MAX_AUDITED_LENGTH = 256

/** @param reason - why there will be no mail. */
export async function recordRequested(
  { audit, keyedHash }: MailParts,
  job: MailJob,
  reason?: NoMail,
): Promise<void> {
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
  // A form asks again for a login that was recorded when it was blocked.
  if (job.pendingLoginId === undefined || job.isOfForm) return
  await audit({ ...event, id: `blocked:${job.id}`, type: 'email_login_blocked' })
}

export function recordSent(
  { audit, clock }: MailParts,
  job: MailJob,
  { messageId, queueId }: SentMail,
): Promise<void> {
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

/** Whether the mail left before, and its process died before it could remove the job. */
export async function wasSent({ store }: MailParts, job: MailJob): Promise<boolean> {
  return (await store.audit.list({ id: sentId(job), limit: 1 })).length > 0
}

export function recordFailed(
  { audit, clock }: MailParts,
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

const sentId = ({ id }: MailJob) => `mail_sent:${id}`

function about({ carried, requester, accountId }: MailJob) {
  return { accountId, clientId: carried.clientId?.slice(0, MAX_AUDITED_LENGTH), ...requester }
}

// A notice belongs to what it tells of, and has no event of its own.
function detailsOf<Known extends object>(kind: MailKind, known: Known) {
  const details = { ...(MAIL_KINDS[kind].isNotice && { mail: kind }), ...known }
  return Object.keys(details).length > 0 ? { details } : {}
}
