/** A request for a mail, as it is kept. */
import { z } from 'zod'
import { isMailKind, type MailKind } from '../ports/mail-kinds.ts'
import type { CarriedParameters, Requester } from '../ports/requests.ts'
import { defined, holds, kindOf, type RecordOf } from './kind.ts'

/** `over`: nothing but its id stays, which a form would send again. */
type State = 'requested' | 'resolved' | 'superseded' | 'dead' | 'over'

const Given = z.object({
  attempts: z.int().min(0).max(1_000_000),
  carried: z.record(z.string(), z.string()),
  requester: z.record(z.string(), z.string().or(z.boolean()).optional()),
})

export const MAIL_OUTBOX = kindOf({
  name: 'mail_outbox',
  fields: {
    kind: 'text',
    state: holds<State>('text'),
    /** As typed, until a worker has looked the user up. `undefined`: the account is known. */
    identifier: 'text?',
    /** `undefined`: it was not looked up yet, or nobody is meant. */
    accountId: 'text?',
    pendingLoginId: 'text?',
    /** Where the mail goes, whatever address the account has by then. `undefined`: to that. */
    sendTo: 'text?',
    /** When it was asked for, the account had not verified `sendTo`. Left out: that is judged when the mail leaves. */
    isClaim: 'boolean?',
    carried: holds<CarriedParameters>('json'),
    requester: holds<Requester>('json'),
    /** A form asked for it that can be sent again: the id stays taken for a week after the job is over. */
    isOfForm: 'boolean?',
    /** Whether its account was looked up, maybe by a worker that did not come to the end. */
    isResolved: 'boolean',
    /** Time of the database, not of the process. */
    requestedAt: 'time',
    /** No worker takes the job before this time. */
    notBefore: 'time',
    /** After this time nobody wants the mail any more. */
    expiresAt: 'time',
    /** How often it was taken to be sent, this time included. */
    attempts: 'number',
    /** Names the claim; a write with the id of an earlier claim changes nothing. `undefined`: nobody holds it. */
    leaseId: 'text?',
    /** Nobody may claim it before: `notBefore`, then the end of the lease or of the pause before another attempt. */
    availableAt: 'time?',
    /** Why the last attempt failed, or why nobody will try again. */
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
  isWhole(job) {
    const { identifier, accountId, availableAt } = job
    const isDue = availableAt !== undefined && (identifier ?? accountId) !== undefined
    const isWorked = isWaiting(job) || job.state === 'superseded'
    return Given.safeParse(job).success && (isDue || !isWorked)
  },
  damagedIsNone: true,
  isRemembered: true,
  isMostlyNew: true,
})

export type JobRecord = RecordOf<typeof MAIL_OUTBOX>

type Asked = 'identifier' | 'accountId' | 'pendingLoginId' | 'carried' | 'requester' | 'notBefore'

/** A request for one mail. */
export interface NewMailJob
  extends
    Pick<JobRecord, 'id' | 'expiresAt' | Asked>,
    Partial<Pick<JobRecord, 'sendTo' | 'isClaim' | 'isOfForm'>> {
  kind: MailKind
}

/** A mail that a worker has claimed. */
export interface MailJob
  extends NewMailJob, Pick<JobRecord, 'isResolved' | 'requestedAt' | 'attempts'> {
  /** Whether the account asked again since: then this job ends without a mail. */
  isSuperseded: boolean
  leaseId: string
  /** When it may be given to another caller. */
  heldUntil: Date
}

/** A request of a known account, also one that ended as a dead letter. */
export interface RequestOfAccount extends Pick<
  JobRecord,
  'id' | 'requestedAt' | 'expiresAt' | 'isResolved' | 'pendingLoginId'
> {
  /** Whether its mail may leave yet: it is neither superseded nor a dead letter. */
  isWaiting: boolean
}

/** A record of the outbox without what was typed, and without its lease. */
export interface MailJobStatus extends Pick<JobRecord, 'id' | 'accountId' | 'attempts' | 'reason'> {
  /** A `string` that is no kind of ours: the record was damaged. */
  kind: MailKind | (string & {})
  /** `dead`: nobody will try again. */
  state: 'waiting' | 'dead'
  /** When a worker takes it next; in the past while all are busy. `undefined`: never. */
  nextAttemptAt: Date | undefined
  requestedAt: Date | undefined
  expiresAt: Date | undefined
  /** Whether a worker holds it. */
  isHeld: boolean
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

export const isWaiting = ({ state }: { state: State }): boolean =>
  state === 'requested' || state === 'resolved'

export const isHeldAt = ({ leaseId, availableAt }: JobRecord, at: Date) =>
  leaseId !== undefined && availableAt !== undefined && availableAt > at

/** `undefined`: it is no readable job that somebody holds. */
export function jobOf(record: JobRecord): MailJob | undefined {
  const { state, reason: _reason, purgeAt: _purgeAt, availableAt, leaseId, kind, ...job } = record
  if (!leaseId || !availableAt || !isMailKind(kind)) return undefined
  const { sendTo, isClaim, isOfForm, requester, ...others } = job
  return {
    ...others,
    ...defined({ sendTo, isClaim, isOfForm }),
    kind,
    // What is undefined is not kept.
    requester: Object.assign({ address: undefined, userAgent: undefined }, requester),
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
