import type { RequestOrder } from '../../ports/index.ts'
import { text, time } from './conditions.ts'

/** Jobs of a later request. */
export function jobsAfter({ requestedAt, mailJobId }: RequestOrder) {
  return {
    $or: [
      { requested_at: { $gt: time(requestedAt) } },
      { requested_at: requestedAt, _id: { $gt: text(mailJobId) } },
    ],
  }
}

/** Jobs of an earlier request. */
export function jobsBefore({ requestedAt, mailJobId }: RequestOrder) {
  return {
    $or: [
      { requested_at: { $lt: time(requestedAt) } },
      { requested_at: requestedAt, _id: { $lt: text(mailJobId) } },
    ],
  }
}

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
