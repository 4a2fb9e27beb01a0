import type { RequestOrder } from '../contract/requests.ts'

/** Whether one request is later than the other, or the later attempt of the same. */
export function isLater(one: RequestOrder, other: RequestOrder): boolean {
  const apart = one.requestedAt.getTime() - other.requestedAt.getTime()
  if (apart !== 0) return apart > 0
  if (one.mailJobId !== other.mailJobId) return one.mailJobId > other.mailJobId
  return one.attempt > other.attempt
}

/** Where a job stands among the requests, before any attempt. */
export function orderOf(job: { id: string; requestedAt: Date }): RequestOrder {
  return { requestedAt: job.requestedAt, mailJobId: job.id, attempt: 0 }
}

/** The same for the attempt under way. */
export function attemptOf(job: Parameters<typeof orderOf>[0] & { attempts: number }): RequestOrder {
  return { ...orderOf(job), attempt: job.attempts }
}
