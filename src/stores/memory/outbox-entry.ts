import type { MailJob, NewMailJob, RequestOfAccount } from '../../ports/index.ts'
import { weekAfter } from '../../ports/week.ts'

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

export function newEntry(job: NewMailJob, requestedAt: Date): JobEntry {
  return {
    job: { ...structuredClone(job), requestedAt, attempts: 0 },
    state: 'requested',
    isResolved: false,
    leaseId: undefined,
    availableAt: job.notBefore,
    reason: undefined,
    purgeAt: NEVER,
  }
}

export function leased(entry: JobEntry, leaseId: string, heldUntil: Date): MailJob {
  entry.leaseId = leaseId
  entry.availableAt = heldUntil
  const isSuperseded = entry.state === 'superseded'
  const { isResolved } = entry
  return { ...structuredClone(entry.job), isSuperseded, isResolved, leaseId, heldUntil }
}

export function isWaiting({ state }: JobEntry): boolean {
  return state === 'requested' || state === 'resolved'
}

export function toRequest(entry: JobEntry): RequestOfAccount {
  const { id, requestedAt, expiresAt, pendingLoginId } = entry.job
  return {
    id,
    requestedAt,
    expiresAt,
    isResolved: entry.isResolved,
    isWaiting: isWaiting(entry),
    pendingLoginId,
  }
}

export function toResolved(entry: JobEntry, accountId: string, heldUntil: Date): void {
  entry.job.accountId = accountId
  entry.job.identifier = undefined
  entry.job.attempts += 1
  entry.state = 'resolved'
  entry.isResolved = true
  entry.availableAt = heldUntil
}

export function toReleased(entry: JobEntry, at: Date, reason: string | undefined): void {
  entry.leaseId = undefined
  entry.availableAt = at
  if (reason === undefined) entry.job.attempts -= 1
  else entry.reason = reason
}

export function toDeadLetter(entry: JobEntry, at: Date, reason: string): void {
  entry.state = 'dead'
  entry.reason = reason
  entry.leaseId = undefined
  entry.job.identifier = undefined
  entry.availableAt = NEVER
  entry.purgeAt = weekAfter(at)
}
