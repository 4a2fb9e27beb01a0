/** Of the requests of one account, of one kind, the newest wins. Which of two is newer, `store/outbox-record.ts` says. */
import type { Clock } from '../clock.ts'
import type { User } from '../contract/index.ts'
import { MAIL_KINDS, tokensOf, type TokenPart } from '../contract/mail-kinds.ts'
import { attemptOf, isLater, orderOf, isWaiting } from '../store/outbox-record.ts'
import { MAX_LINKS } from '../flows/link.ts'
import type { AccountFlowsStore, JobRecord, MailJob } from '../store/index.ts'

/**
 * Ends earlier requests where only the newest counts, and answers whether the account asked again since. If not, earlier links end too.
 * Repeated, it changes nothing. The job counts as resolved by now, so that of two at once at least one sees the other.
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
  // A later one that got its mail is not there any more.
  const links = (await tokens?.ofUser(user.id, MAX_LINKS)) ?? []
  return links.some(
    (link) => link.pendingLoginId === job.pendingLoginId && isLater(link, attemptOf(job)),
  )
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
