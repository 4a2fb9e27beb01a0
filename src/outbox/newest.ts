import type { MailJob, RequestOfAccount } from '../ports/index.ts'
import { isLater, orderOf } from '../ports/request-order.ts'

/** Of the requests of one account, of one kind, the newest wins. Read once the job itself counts as resolved. */

/** Whether a later one was looked up and is still there, be it as a dead letter. */
export function isOvertaken(job: MailJob, requests: RequestOfAccount[]): boolean {
  return requests.some((other) => other.isResolved && isLater(orderOf(other), orderOf(job)))
}

/** Those that the job ends. */
export function earlierThan(job: MailJob, requests: RequestOfAccount[]): string[] {
  return requests
    .filter((other) => other.isWaiting && isLater(orderOf(job), orderOf(other)))
    .map(({ id }) => id)
}

/**
 * Whether another one was looked up, and its mail may leave yet. To a request of a login that waits only others of such a login
 * count.
 */
export function isOtherUnderWay(job: MailJob, requests: RequestOfAccount[], at: Date): boolean {
  return requests.some(
    (other) =>
      other.id !== job.id &&
      other.isResolved &&
      other.isWaiting &&
      other.expiresAt > at &&
      (job.pendingLoginId === undefined || other.isOfLogin),
  )
}
