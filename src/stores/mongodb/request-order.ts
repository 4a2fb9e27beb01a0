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

/** Whether a record, which may be damaged, is of a later request or attempt than the other. */
export function isAfter(one: RequestFields, other: RequestFields): boolean {
  return dateOf(one.requested_at) !== undefined && isLater(orderOf(one), orderOf(other))
}

function orderOf(token: RequestFields): RequestOrder {
  const { requested_at: requestedAt, mail_job_id: mailJobId, attempt } = token
  return { requestedAt, mailJobId, attempt }
}
