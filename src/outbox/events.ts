import type { AuditEvent, MailFailure, MailJob, MailKind, NoMail } from '../ports/index.ts'

/** Anybody may have written it. */
const MAX_AUDITED_LENGTH = 256

/** What the audit log learns of a mail job. Each event is recorded once, however often the job is taken. */
export interface MailEvents {
  /** @param reason - why there will be no mail. */
  requested(job: MailJob, reason?: NoMail): Promise<void>
  sent(job: MailJob): Promise<void>
  /** Whether the mail left before, and whoever sent it died before it could remove the job. */
  wasSent(job: MailJob): Promise<boolean>
  failed(job: MailJob, reason: MailFailure): Promise<void>
}

/** @param keyedHash - stands for an identifier in the audit log, and tells nothing about it. */
export function createMailEvents(
  audit: { record(event: AuditEvent): Promise<void>; has(id: string): Promise<boolean> },
  keyedHash: (identifier: string) => string,
  now: () => Date,
): MailEvents {
  const about = ({ carried, requester, accountId }: MailJob) => ({
    accountId,
    clientId: carried.clientId?.slice(0, MAX_AUDITED_LENGTH),
    ...requester,
  })

  return {
    async requested(job, reason) {
      if (job.kind === 'password_changed') return
      const event = { ...about(job), at: job.requestedAt }
      await audit.record({
        ...event,
        id: `requested:${job.id}`,
        type: `${job.kind}_requested`,
        ...(reason !== undefined && { reason }),
        ...(job.accountId === undefined &&
          job.identifier !== undefined && {
            details: { identifier_hash: keyedHash(job.identifier) },
          }),
      })
      if (job.pendingLoginId === undefined) return
      await audit.record({ ...event, id: `blocked:${job.id}`, type: 'email_login_blocked' })
    },

    sent: (job) =>
      audit.record({
        ...about(job),
        ...noticeOf(job.kind),
        id: sentId(job),
        type: `${flowOf(job.kind)}_mail_sent`,
        at: now(),
      }),

    wasSent: (job) => audit.has(sentId(job)),

    failed: (job, reason) =>
      audit.record({
        ...about(job),
        ...noticeOf(job.kind),
        id: `mail_failed:${job.id}:${job.attempts}:${reason}`,
        type: `${flowOf(job.kind)}_mail_failed`,
        at: now(),
        reason,
      }),
  }
}

const sentId = ({ id }: MailJob) => `mail_sent:${id}`

function flowOf(kind: MailKind) {
  return kind === 'password_changed' ? 'password_reset' : kind
}

// The notice belongs to the reset, and has no event of its own.
function noticeOf(kind: MailKind) {
  return kind === 'password_changed' ? ({ details: { mail: kind } } as const) : {}
}
