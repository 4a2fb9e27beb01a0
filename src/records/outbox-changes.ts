/** How a request for a mail changes. */
import { isMailKind } from '../ports/mail-kinds.ts'
import { weekAfter } from '../ports/week.ts'
import { isWaiting, type JobRecord, type MailJob, newRecord } from './outbox-record.ts'

/**
 * Why a job is taken. `resolve`: to look its account up, or to end it if it is superseded. `send`: to send it, once it is
 * resolved and within its life. `expire`: to end it, if nobody sent it within its life.
 */
export type MailStage = 'resolve' | 'send' | 'expire'

export function isFor(record: JobRecord, stage: MailStage, at: Date): boolean {
  const { state, expiresAt, availableAt, kind } = record
  if (!availableAt || availableAt > at || !isMailKind(kind)) return false
  if (stage === 'resolve') return state === 'requested' || state === 'superseded'
  return state === 'resolved' && (stage === 'send') === expiresAt > at
}

export const isHeldBy = ({ leaseId }: JobRecord, job: MailJob) => leaseId === job.leaseId

export const leased = (record: JobRecord, stage: MailStage, leaseId: string, heldUntil: Date) => ({
  ...record,
  attempts: record.attempts + (stage === 'send' ? 1 : 0),
  leaseId,
  availableAt: heldUntil,
})

export const resolved = (record: JobRecord, accountId: string, heldUntil: Date): JobRecord => ({
  ...record,
  attempts: record.attempts + 1,
  accountId,
  identifier: undefined,
  isResolved: true,
  state: 'resolved',
  availableAt: heldUntil,
})

export const superseded = (record: JobRecord, at: Date): JobRecord =>
  isWaiting(record)
    ? { ...record, state: 'superseded', leaseId: undefined, availableAt: at }
    : record

export const released = (record: JobRecord, at: Date, reason: string | undefined): JobRecord => ({
  ...record,
  leaseId: undefined,
  availableAt: at,
  reason: reason ?? record.reason,
  attempts: record.attempts - (reason === undefined ? 1 : 0),
})

export const dead = (record: JobRecord, at: Date, reason: string): JobRecord => ({
  ...record,
  state: 'dead',
  reason,
  identifier: undefined,
  leaseId: undefined,
  availableAt: undefined,
  purgeAt: weekAfter(at),
})

/** `undefined`: nothing stays. */
export const over = ({ id, isOfForm }: JobRecord, at: Date): JobRecord | undefined =>
  isOfForm
    ? { ...emptied(id, at), state: 'over', availableAt: undefined, purgeAt: weekAfter(at) }
    : undefined

/** What a record that cannot be read becomes. */
export const unreadable = (id: string, at: Date) => dead(emptied(id, at), at, 'unreadable')

const emptied = (id: string, at: Date) =>
  newRecord({
    id,
    kind: 'password_reset',
    identifier: undefined,
    accountId: undefined,
    pendingLoginId: undefined,
    carried: {},
    requester: { address: undefined, userAgent: undefined },
    notBefore: at,
    expiresAt: at,
  })

/** A dead letter becomes a request that its account makes now; a waiting job is due at once. */
export function revived(
  record: JobRecord,
  now: Date,
  at: Date,
  expiresAt: Date,
): JobRecord | 'no_account' | 'held' | 'not_found' {
  const { kind, state, accountId, leaseId, availableAt } = record
  if (state === 'over' || !isMailKind(kind)) return 'not_found'
  if (state === 'dead' && accountId === undefined) return 'no_account'
  const due = { ...record, availableAt: at }
  if (state === 'dead') {
    const request = { state: 'requested', requestedAt: now, expiresAt, isResolved: false } as const
    return { ...due, ...request, reason: undefined, purgeAt: undefined }
  }
  return leaseId !== undefined || !availableAt || availableAt <= at ? 'held' : due
}
