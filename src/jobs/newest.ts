/** Of the requests of one account and one kind, the newest wins. `store/outbox-record.ts` decides which of two is newer. */
import type { Clock } from '../clock.ts'
import type { User } from '../contract/index.ts'
import { MAIL_KINDS, tokensOf, type TokenPart } from '../contract/mail-kinds.ts'
import { isLater, orderOf, isWaiting } from '../store/outbox-record.ts'
import { MAX_LINKS } from '../flows/link.ts'
import type { AccountFlowsStore, JobRecord, MailJob } from '../store/index.ts'

/**
 * Ends earlier requests if only the newest counts. Returns whether the account has asked again since; if not, earlier links end too. A
 * repeated call changes nothing. The job already counts as resolved, so at least one of two concurrent jobs sees the other.
 */
export async function endEarlierAndCheckOvertaken(
  { store, clock }: { store: Pick<AccountFlowsStore, 'outbox' | TokenPart>; clock: Clock },
  job: MailJob,
  user: User,
): Promise<boolean> {
  const { outbox } = store
  const { newestOnly } = MAIL_KINDS[job.kind]
  const now = clock.now()
  const tokens = tokensOf(store, job.kind)
  const requests = await outbox.requestsOf(user.id, job.kind)
  if (newestOnly) await outbox.supersede(earlierThan(job, requests), now)
  if (isOvertaken(job, requests)) return true
  if (newestOnly) {
    await tokens?.revoke({ userId: user.id, upTo: orderOf(job) }, now)
    return false
  }
  // A later request whose mail has left is no longer in the outbox, but its link is stored.
  const links = (await tokens?.ofUser(user.id, MAX_LINKS)) ?? []
  return links.some(
    (link) =>
      link.pendingLoginId === job.pendingLoginId && isLater(link, orderOf(job, job.attempts)),
  )
}

/** Whether a later request was looked up and still exists, even as a dead letter. Both must be for the same login, or both for none. */
export function isOvertaken(job: MailJob, requests: JobRecord[]): boolean {
  return requests.some(
    (other) =>
      other.isResolved &&
      other.pendingLoginId === job.pendingLoginId &&
      isLater(orderOf(other), orderOf(job)),
  )
}

/** The ids of the requests that the job ends. */
export function earlierThan(job: MailJob, requests: JobRecord[]): string[] {
  return requests
    .filter((other) => isWaiting(other) && isLater(orderOf(job), orderOf(other)))
    .map(({ id }) => id)
}

/** Whether another request was looked up, and its mail may still leave. If the job is for a login, only requests of that login count. */
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
