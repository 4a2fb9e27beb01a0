/** Of the requests of one account, of one kind, the newest wins. Which of two is newer, `ports/request-order.ts` says. */
import type { User } from '../ports/index.ts'
import { MAIL_KINDS } from '../ports/mail-kinds.ts'
import { isLater, orderOf } from '../ports/request-order.ts'
import type { JobRecord, MailJob } from '../records/index.ts'
import { isWaiting } from '../records/outbox-record.ts'
import type { OutboxParts } from './parts.ts'

/** A mail leaves earlier than this where nothing is in its way. */
const LATE_MS = 2_000

/**
 * Whether the account asked again since, just after it was looked up. If not, what it asked for earlier ends where only the newest
 * counts. Repeated, it changes nothing.
 */
export async function isOvertakenAtLookUp(
  parts: OutboxParts,
  job: MailJob,
  user: User,
): Promise<boolean> {
  // The job counts as resolved by now, so that of two at once at least one sees the other.
  const { newestOnly } = MAIL_KINDS[job.kind]
  if (newestOnly && (await isOvertakenElseEndsEarlier(parts, job, user))) return true
  await parts.flows[job.kind].onRequest?.(job, user)
  return false
}

/** The same before it is sent: nobody wants two mails at once after an outage. */
export async function isOvertakenAtSending(
  parts: OutboxParts,
  job: MailJob,
  user: User,
): Promise<boolean> {
  const { flows, clock } = parts
  const isRetried = job.attempts > 1
  if (!isRetried && clock.now().getTime() - job.requestedAt.getTime() <= LATE_MS) return false
  if (await isOvertakenElseEndsEarlier(parts, job, user)) return true
  // The process that looked the account up may have died before it did all that is due then.
  if (isRetried) await flows[job.kind].onRequest?.(job, user)
  return (await flows[job.kind].isServedLater?.(job, user)) ?? false
}

async function isOvertakenElseEndsEarlier(
  { store, clock }: OutboxParts,
  job: MailJob,
  user: User,
): Promise<boolean> {
  const requests = await store.outbox.requestsOf(user.id, job.kind)
  if (MAIL_KINDS[job.kind].newestOnly) {
    await store.outbox.supersede(earlierThan(job, requests), clock.now())
  }
  return isOvertaken(job, requests)
}

/** Whether a later one for the same login, or likewise for none, was looked up and is still there, be it as a dead letter. */
export function isOvertaken(job: MailJob, requests: JobRecord[]): boolean {
  return requests.some(
    (other) =>
      other.isResolved &&
      other.pendingLoginId === job.pendingLoginId &&
      isLater(orderOf(other), orderOf(job)),
  )
}

/** Those that the job ends. */
export function earlierThan(job: MailJob, requests: JobRecord[]): string[] {
  return requests
    .filter((other) => isWaiting(other) && isLater(orderOf(job), orderOf(other)))
    .map(({ id }) => id)
}

/** Whether another one was looked up, and its mail may leave yet. To a request of a login only others of that login count. */
export function isOtherUnderWay(job: MailJob, requests: JobRecord[], at: Date): boolean {
  return requests.some(
    (other) =>
      other.id !== job.id &&
      other.isResolved &&
      isWaiting(other) &&
      other.expiresAt > at &&
      (job.pendingLoginId === undefined || other.pendingLoginId === job.pendingLoginId),
  )
}
