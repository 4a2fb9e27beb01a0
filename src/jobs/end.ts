import type { NoMail } from '../contract/index.ts'
import { tokensOf } from '../contract/mail-kinds.ts'
import { attemptOf } from '../store/outbox-record.ts'
import type { MailJob } from '../store/index.ts'
import { recordFailed, wasSent } from '../mail/events.ts'
import type { MailParts } from './parts.ts'

/** What an admin can mend, or should know of; the others are ordinary, and nothing of them stays. */
const DEAD_LETTERS: ReadonlySet<NoMail> = new Set<NoMail>([
  'expired',
  'account_gone',
  'disabled',
  'no_address',
  'bad_address',
  'no_password',
])

/** Ends a job that gets no mail. */
export async function endJob(parts: MailParts, job: MailJob, reason: NoMail): Promise<undefined> {
  if (!DEAD_LETTERS.has(reason)) await parts.store.outbox.remove(job)
  else if (await giveUp(parts, job, reason)) {
    const { id, kind } = job
    parts.log('warn', 'a request got no mail', { job: id, kind, reason })
  }
}

/** Likewise, and records why; for a job whose request is recorded without a reason. */
export async function endUnsent(
  parts: MailParts,
  job: MailJob,
  reason: NoMail,
): Promise<undefined> {
  // Its process may have sent it, and died before it could remove the job.
  const why = reason === 'expired' && (await wasSent(parts, job)) ? 'sent_before' : reason
  if (why !== 'sent_before') await recordFailed(parts, job, why)
  await endJob(parts, job, why)
}

/** Whether nobody else has the job. */
export async function isHeld(parts: MailParts, job: MailJob): Promise<boolean> {
  return (await parts.store.outbox.isHeld(job)) && isInTime(parts, job)
}

/** After the end of the hold somebody may take the job at any moment. */
export const isInTime = ({ clock }: MailParts, job: MailJob) => clock.now() < job.availableAt

/** Makes a dead letter of a job, and voids its links up to this attempt. `false`: somebody else holds it. */
export async function giveUp(parts: MailParts, job: MailJob, reason: string): Promise<boolean> {
  const { kind, accountId: userId } = job
  const now = parts.clock.now()
  // Its links first: nobody takes a dead letter up again.
  if (userId !== undefined)
    await tokensOf(parts.store, kind)?.revoke({ userId, upTo: attemptOf(job) }, now)
  return parts.store.outbox.giveUp(job, now, reason)
}

/** Makes dead letters of all records that are no readable job. */
export async function endUnreadable({ store, clock, log }: MailParts): Promise<void> {
  for (const job of await store.outbox.giveUpUnreadable(clock.now()))
    log('error', 'a mail job is damaged and cannot be read; it is a dead letter now', {
      job,
      reason: 'unreadable',
    })
}
