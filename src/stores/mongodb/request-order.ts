import type { RequestOrder } from '../../ports/index.ts'
import { isLater } from '../../ports/request-order.ts'
import { text, time } from './conditions.ts'
import { dateOf } from './values.ts'

/** Tokens of a later request, or of a later attempt. */
export function tokensAfter({ requestedAt, mailJobId, attempt }: RequestOrder) {
  return {
    $or: [
      { requested_at: { $gt: time(requestedAt) } },
      { requested_at: requestedAt, mail_job_id: { $gt: text(mailJobId) } },
      { requested_at: requestedAt, mail_job_id: mailJobId, attempt: { $gt: attempt } },
    ],
  }
}

/** Where a token stands among the requests of its user. */
export interface RequestFields {
  user_id: string
  requested_at: Date
  mail_job_id: string
  attempt: number
}

/** Whether a record that may be damaged is of a later request or attempt. */
export function isAfter(token: RequestFields, order: RequestOrder): boolean {
  const { mail_job_id: mailJobId, attempt } = token
  const requestedAt = dateOf(token.requested_at)
  return requestedAt !== undefined && isLater({ requestedAt, mailJobId, attempt }, order)
}
