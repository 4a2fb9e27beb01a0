import type { MailJob, NewMailJob, RequestOfAccount } from '../../ports/index.ts'
import { weekAfter } from '../../ports/week.ts'

/** A record of the outbox in memory. */
export interface JobEntry {
  job: NewMailJob & Pick<MailJob, 'requestedAt' | 'attempts' | 'isResolved'>
  state: 'requested' | 'resolved' | 'superseded' | 'dead'
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
    job: { ...structuredClone(job), requestedAt, attempts: 0, isResolved: false },
    state: 'requested',
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
  return { ...structuredClone(entry.job), isSuperseded, leaseId, heldUntil }
}

export function isWaiting({ state }: JobEntry): boolean {
  return state === 'requested' || state === 'resolved'
}

export function toRequest(entry: JobEntry): RequestOfAccount {
  const { id, requestedAt, expiresAt, isResolved, pendingLoginId } = entry.job
  return { id, requestedAt, expiresAt, isResolved, isWaiting: isWaiting(entry), pendingLoginId }
}

export function toResolved(entry: JobEntry, accountId: string, heldUntil: Date): void {
  entry.job.attempts += 1
  Object.assign(entry.job, { accountId, identifier: undefined, isResolved: true })
  entry.state = 'resolved'
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
