import type { RequestOrder } from '../../ports/index.ts'
import { isLater } from '../../ports/request-order.ts'
import { text, time } from './conditions.ts'
import { type DocumentOf, fromDocument } from './fields.ts'
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

const types = {
  userId: 'string',
  requestedAt: 'date',
  mailJobId: 'string',
  attempt: 'int',
} as const

/** Where a token stands among the requests of its user. */
export type RequestFields = DocumentOf<typeof types>

/** Whether a record, which may be damaged, is of a later request or attempt than the other. */
export const isAfter = (one: RequestFields, other: RequestFields) =>
  dateOf(one.requested_at) !== undefined &&
  isLater(fromDocument(one, types), fromDocument(other, types))
