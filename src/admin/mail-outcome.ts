import type { AuditHistory, MailJobStatus, OutboxAdministration } from '../ports/index.ts'

/** What became of a mail that was asked for. */
export type MailOutcome =
  | { state: 'waiting' | 'dead'; job: MailJobStatus }
  | { state: 'sent'; at: Date }
  /** There is no mail, for this reason. */
  | { state: 'ended'; reason: string | undefined }
  | { state: 'unknown' }

/** More than one mail fails in its life. */
const MAX_FAILURES = 1_000

/** Asks the outbox first: a job leaves it after its end is recorded. */
export function createMailOutcome(
  outbox: Pick<OutboxAdministration, 'status'>,
  audit: AuditHistory,
  now: () => Date,
) {
  return async (id: string): Promise<MailOutcome> => {
    const job = await outbox.status(id, now())
    if (job) return { state: job.state, job }
    const sent = await audit.find(`mail_sent:${id}`)
    if (sent) return { state: 'sent', at: sent.at }
    const requested = await audit.find(`requested:${id}`)
    if (!requested) return { state: 'unknown' }
    // A dead letter that was retried ended for another reason than at first.
    const reason = (await lastFailure(id, requested.accountId)) ?? requested.reason
    return { state: 'ended', reason }
  }

  async function lastFailure(id: string, accountId: string | undefined) {
    if (accountId === undefined) return undefined
    const types = ['password_reset_mail_failed', 'email_verification_mail_failed'] as const
    const failures = await audit.list({ accountId, types: [...types], limit: MAX_FAILURES })
    return failures.find((event) => event.id.startsWith(`mail_failed:${id}:`))?.reason
  }
}
