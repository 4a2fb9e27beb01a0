import type { RequestOrder } from '../ports.ts'
import { text, time } from './mongodb-conditions.ts'

/** @param idField - where the documents keep the id of the mail job. */
export function laterThan({ requestedAt, mailJobId }: RequestOrder, idField: string) {
  return {
    $or: [
      { requested_at: { $gt: time(requestedAt) } },
      { requested_at: requestedAt, [idField]: { $gt: text(mailJobId) } },
    ],
  }
}

/** @param idField - where the documents keep the id of the mail job. */
export function earlierThan({ requestedAt, mailJobId }: RequestOrder, idField: string) {
  return {
    $or: [
      { requested_at: { $lt: time(requestedAt) } },
      { requested_at: requestedAt, [idField]: { $lt: text(mailJobId) } },
    ],
  }
}
