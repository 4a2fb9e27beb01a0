/** A request for a mail, as it is kept. */
import { z } from 'zod'
import type { MailJob, MailJobStatus, NewMailJob, RequestOfAccount } from '../ports/index.ts'
import { isMailKind } from '../ports/mail-kinds.ts'
import { kindOf } from './kind.ts'

/** `over`: nothing but its id stays, which a form would send again. */
type State = 'requested' | 'resolved' | 'superseded' | 'dead' | 'over'

export interface JobRecord extends Omit<
  NewMailJob,
  'kind' | 'notBefore' | 'isOfForm' | 'isClaim' | 'sendTo'
> {
  kind: string
  state: State
  sendTo: string | undefined
  isClaim: boolean | undefined
  isOfForm: boolean | undefined
  isResolved: boolean
  requestedAt: Date
  notBefore: Date
  attempts: number
  /** `undefined`: nobody holds it. */
  leaseId: string | undefined
  /** Nobody may claim it before: `notBefore`, then the end of the lease or of the pause before another attempt. */
  availableAt: Date | undefined
  reason: string | undefined
  purgeAt: Date | undefined
}

export const MAIL_OUTBOX = kindOf<JobRecord>({
  name: 'mail_outbox',
  fields: {
    kind: 'text',
    state: 'text',
    identifier: 'text?',
    accountId: 'text?',
    pendingLoginId: 'text?',
    sendTo: 'text?',
    isClaim: 'boolean?',
    carried: 'json',
    requester: 'json',
    isOfForm: 'boolean?',
    isResolved: 'boolean',
    requestedAt: 'time',
    notBefore: 'time',
    expiresAt: 'time',
    attempts: 'number',
    leaseId: 'text?',
    availableAt: 'time?',
    reason: 'text?',
    purgeAt: 'time?',
  },
  indexes: [
    ['state', 'availableAt'],
    ['state', 'expiresAt'],
    ['state', 'requestedAt'],
    ['accountId', 'requestedAt'],
    ['requestedAt'],
  ],
  insertedAt: 'requestedAt',
  purgedAt: 'purgeAt',
  isWhole,
  damagedIsNone: true,
  isRemembered: true,
  isMostlyNew: true,
})

const Given = z.object({
  attempts: z.int().min(0).max(1_000_000),
  carried: z.record(z.string(), z.string()),
  requester: z.record(z.string(), z.string().or(z.boolean()).optional()),
})

function isWhole(job: JobRecord): boolean {
  const { identifier, accountId, availableAt } = job
  const isDue = availableAt !== undefined && (identifier ?? accountId) !== undefined
  const isWorked = isWaiting(job) || job.state === 'superseded'
  return Given.safeParse(job).success && (isDue || !isWorked)
}

export function newRecord(job: NewMailJob): JobRecord {
  return {
    sendTo: undefined,
    isClaim: undefined,
    isOfForm: undefined,
    ...job,
    state: 'requested',
    isResolved: false,
    // The database has the last word.
    requestedAt: job.notBefore,
    attempts: 0,
    leaseId: undefined,
    availableAt: job.notBefore,
    reason: undefined,
    purgeAt: undefined,
  }
}

export function isWaiting({ state }: JobRecord): boolean {
  return state === 'requested' || state === 'resolved'
}

export const isHeldAt = ({ leaseId, availableAt }: JobRecord, at: Date) =>
  leaseId !== undefined && availableAt !== undefined && availableAt > at

/** `undefined`: it is no readable job that somebody holds. */
export function jobOf(record: JobRecord): MailJob | undefined {
  const { state, reason: _reason, purgeAt: _purgeAt, availableAt, leaseId, kind, ...job } = record
  if (!leaseId || !availableAt || !isMailKind(kind)) return undefined
  const { sendTo, isClaim, isOfForm, requester, ...others } = job
  return {
    ...others,
    kind,
    // What is undefined is not kept.
    requester: Object.assign({ address: undefined, userAgent: undefined }, requester),
    ...(sendTo !== undefined && { sendTo }),
    ...(isClaim !== undefined && { isClaim }),
    ...(isOfForm !== undefined && { isOfForm }),
    isSuperseded: state === 'superseded',
    leaseId,
    heldUntil: availableAt,
  }
}

export function requestOf(record: JobRecord): RequestOfAccount {
  const { id, requestedAt, expiresAt, isResolved, pendingLoginId } = record
  return { id, requestedAt, expiresAt, isResolved, isWaiting: isWaiting(record), pendingLoginId }
}

export function statusOf(record: JobRecord, at: Date): MailJobStatus {
  const { id, kind, accountId, requestedAt, expiresAt, attempts, reason } = record
  const isDead = record.state === 'dead'
  return {
    id,
    kind,
    state: isDead ? 'dead' : 'waiting',
    accountId,
    requestedAt,
    nextAttemptAt: isDead ? undefined : record.availableAt,
    expiresAt,
    attempts,
    reason,
    isHeld: isHeldAt(record, at),
  }
}
