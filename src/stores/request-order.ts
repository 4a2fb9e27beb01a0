import type { RequestOrder } from '../ports.ts'

/** Whether one request is later than the other. */
export function isLater(one: RequestOrder, other: RequestOrder): boolean {
  const apart = one.requestedAt.getTime() - other.requestedAt.getTime()
  return apart > 0 || (apart === 0 && one.mailJobId > other.mailJobId)
}
