import * as z from 'zod'
import type { RecordedEvent } from '../contract/index.ts'
import type { AccountFlowsStore, MailJobStatus } from '../store/index.ts'
import { MAIL_KINDS, mailKinds } from '../contract/mail-kinds.ts'
import { AuditEvent, eventShape } from './audit.ts'
import { count, list, object, optional, text, time, wireOf } from './schema.ts'
import type { NameOf } from './usernames.ts'

export type MailJob = z.infer<typeof MailJob>
export const MailJob = object('A mail that waits, or a dead letter.', {
  id: text,
  kind: text,
  state: z.enum(['waiting', 'dead']),
  account_id: optional(text),
  username: optional(text, 'Of the account, as it is now.'),
  requested_at: optional(time),
  next_attempt_at: optional(time),
  expires_at: optional(time),
  attempts: count,
  reason: optional(text, 'Why the last attempt failed, or why there is no other attempt.'),
  is_held: z.boolean().describe('Whether a worker has it.'),
})

export type MailOutcome = z.infer<typeof MailOutcome>
export const MailOutcome = object('What became of a mail that was asked for.', {
  mail_id: text,
  state: z
    .enum(['waiting', 'sent', 'ended', 'dead', 'unknown'])
    .describe(
      'ended: there is no mail, see reason. dead: it could not be sent. unknown: there is no record of this request.',
    ),
  reason: optional(text),
  attempts: optional(count),
  next_attempt_at: optional(time),
  sent_at: optional(time),
})

export type MailRecord = z.infer<typeof MailRecord>
export const MailRecord = MailOutcome.extend({
  mail: optional(MailJob, 'While it waits, or is a dead letter.'),
  message_id: optional(text, 'Of the mail that was sent.'),
  queue_id: optional(text, 'What the mail server calls it.'),
  history: list(AuditEvent, 'What was recorded of it, oldest first.'),
}).describe('All that is known of a mail that was asked for.')

export const mailShape = (job: MailJobStatus, nameOf: NameOf) =>
  wireOf(MailJob, { ...job, username: nameOf(job.accountId) })

/** More than one mail fails in its life. */
const MAX_FAILURES = 1_000

/** What is kept of a mail. The outbox is asked first: a job leaves it after its end is recorded. */
export async function readMail({ outbox, audit }: AccountFlowsStore, id: string, at: Date) {
  const [job] = await outbox.list({ id, limit: 1 }, at)
  const [[requested], [sent]] = await Promise.all([
    audit.list({ id: `requested:${id}`, limit: 1 }),
    audit.list({ id: `mail_sent:${id}`, limit: 1 }),
  ])
  const accountId = job?.accountId ?? requested?.accountId ?? sent?.accountId
  return { id, job, requested, sent, accountId, failures: await failuresOf(audit, id, accountId) }
}

type KeptMail = Awaited<ReturnType<typeof readMail>>

export function outcomeOf({ id: mailId, job, sent, requested, failures }: KeptMail) {
  if (job) return wireOf(MailOutcome, { ...job, mailId })
  if (sent) return wireOf(MailOutcome, { mailId, state: 'sent', sentAt: sent.at })
  if (!requested) return wireOf(MailOutcome, { mailId, state: 'unknown' })
  // A dead letter that was retried ended for another reason than at first.
  const reason = failures[0]?.reason ?? requested.reason
  return wireOf(MailOutcome, { mailId, state: 'ended', reason })
}

export function recordOf(kept: KeptMail, nameOf: NameOf): z.input<typeof MailRecord> {
  const { job, requested, sent, failures } = kept
  const history = [sent, ...failures, requested].filter((event) => event !== undefined).toReversed()
  return {
    ...outcomeOf(kept),
    mail: job && mailShape(job, nameOf),
    message_id: textOf(sent?.details?.['message_id']),
    queue_id: textOf(sent?.details?.['queue_id']),
    history: history.map((event) => eventShape(event, nameOf)),
  }
}

const textOf = (detail: unknown) => (typeof detail === 'string' ? detail : undefined)

/** Newest first. */
async function failuresOf(
  audit: AccountFlowsStore['audit'],
  id: string,
  accountId: string | undefined,
): Promise<RecordedEvent[]> {
  if (accountId === undefined) return []
  const types = new Set(mailKinds.map((kind) => `${MAIL_KINDS[kind].flow}_mail_failed` as const))
  const failures = await audit.list({ accountId, types: [...types], limit: MAX_FAILURES })
  return failures.filter((event) => event.id.startsWith(`mail_failed:${id}:`))
}
