import type { NewMailJob } from '../../ports/index.ts'

/** A record of the outbox in memory. */
export interface JobEntry {
  job: NewMailJob & { requestedAt: Date; attempts: number }
  state: 'requested' | 'resolved' | 'superseded' | 'dead'
  isResolved: boolean
  /** `undefined`: nobody holds it. */
  leaseId: string | undefined
  /** Nobody may claim it before: `notBefore`, then the end of the lease or of the pause before another attempt. */
  availableAt: Date
  reason: string | undefined
  /** Only of a dead letter does this time come. */
  purgeAt: Date
}

export const NEVER = new Date(8.64e15)
