/** Requests for mails: how a record of one changes. */
import type {
  MailJob,
  MailJobStatus,
  MailStage,
  NewMailJob,
  RequestOfAccount,
} from '../ports/index.ts'
import { isMailKind } from '../ports/mail-kinds.ts'
import { weekAfter } from '../ports/week.ts'
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
})

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

export const isWaiting = ({ state }: JobRecord) => state === 'requested' || state === 'resolved'

export function isFor(record: JobRecord, stage: MailStage, at: Date): boolean {
  const { state, expiresAt, availableAt, kind } = record
  if (!availableAt || availableAt > at || !isMailKind(kind)) return false
  if (stage === 'resolve') return state === 'requested' || state === 'superseded'
  return state === 'resolved' && (stage === 'send') === expiresAt > at
}

export const isHeldBy = ({ leaseId }: JobRecord, job: MailJob) => leaseId === job.leaseId

export const isHeldAt = ({ leaseId, availableAt }: JobRecord, at: Date) =>
  leaseId !== undefined && availableAt !== undefined && availableAt > at

export const leased = (record: JobRecord, stage: MailStage, leaseId: string, heldUntil: Date) => ({
  ...record,
  attempts: record.attempts + (stage === 'send' ? 1 : 0),
  leaseId,
  availableAt: heldUntil,
})

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
export function over({ id, isOfForm }: JobRecord, at: Date): JobRecord | undefined {
  if (!isOfForm) return undefined
  const nothing = { identifier: undefined, accountId: undefined, pendingLoginId: undefined }
  return {
    ...newRecord({ ...NOBODY, ...nothing, id, notBefore: at, expiresAt: at }),
    state: 'over',
    availableAt: undefined,
    purgeAt: weekAfter(at),
  }
}

const NOBODY = {
  kind: 'password_reset',
  carried: {},
  requester: { address: undefined, userAgent: undefined },
} as const

/** What a record that cannot be read becomes. */
export const unreadable = (id: string, at: Date): JobRecord => {
  const nothing = { identifier: undefined, accountId: undefined, pendingLoginId: undefined }
  const record = newRecord({ ...NOBODY, ...nothing, id, notBefore: at, expiresAt: at })
  return dead(record, at, 'unreadable')
}

/** A dead letter becomes a request that its account makes now; a waiting job is due at once. */
export function revived(
  record: JobRecord,
  now: Date,
  at: Date,
  expiresAt: Date,
): JobRecord | 'no_account' | 'held' | 'not_found' {
  const { state, accountId, leaseId, availableAt } = record
  if (state === 'over') return 'not_found'
  if (state === 'dead' && accountId === undefined) return 'no_account'
  const due = { ...record, availableAt: at }
  if (state === 'dead') {
    const request = { state: 'requested', requestedAt: now, expiresAt, isResolved: false } as const
    return { ...due, ...request, reason: undefined, purgeAt: undefined }
  }
  return leaseId !== undefined || !availableAt || availableAt <= at ? 'held' : due
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
