/** A request for a mail, as it is kept. */
import { z } from 'zod'
import type { MailKind } from '../contract/mail-kinds.ts'
import type { RequestParameters, Requester } from '../contract/requests.ts'
import { holds, kindOf, weekAfter, type RecordOf } from './kind.ts'

/** `over`: nothing but its id stays, which a form would send again. */
type State = 'requested' | 'resolved' | 'superseded' | 'dead' | 'over'

const Given = z.object({
  attempts: z.int().min(0).max(1_000_000),
  parameters: z.record(z.string(), z.string()),
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
    /** When it was asked for, the account had not verified `sendTo`. Left out: that is checked when the mail leaves. */
    isClaim: 'boolean?',
    parameters: holds<RequestParameters>('json'),
    requester: holds<Requester>('json'),
    /** It can be asked for again, as a form is sent again: the id stays taken for a week after the job is over. */
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
})

export type JobRecord = RecordOf<typeof MAIL_OUTBOX>

/** A request for one mail. */
export interface NewMailJob extends Omit<
  JobRecord,
  'state' | 'isResolved' | 'requestedAt' | 'attempts' | 'leaseId' | 'reason'
> {
  kind: MailKind
}

/** A mail that a worker has claimed, until `availableAt`. If its state is `superseded`, it ends without a mail. */
export type MailJob = JobRecord & { kind: MailKind; leaseId: string; availableAt: Date }

/** A record of the outbox without what was typed, and without its lease. */
export type MailJobStatus = ReturnType<typeof statusOf>

/** Nobody will try again. */
export const dead = (record: JobRecord, at: Date, reason: string): JobRecord => ({
  ...record,
  state: 'dead',
  reason,
  identifier: undefined,
  leaseId: undefined,
  availableAt: undefined,
  purgeAt: weekAfter(at),
})

/** Nothing but an id. */
export const emptied = (id: string, at: Date): JobRecord => ({
  id,
  kind: 'password_reset',
  state: 'over',
  parameters: {},
  requester: { address: undefined, userAgent: undefined },
  isResolved: false,
  requestedAt: at,
  notBefore: at,
  expiresAt: at,
  attempts: 0,
  purgeAt: weekAfter(at),
})

/** Its mail may leave yet. */
export const isWaiting = ({ state }: { state: State }): boolean =>
  state === 'requested' || state === 'resolved'

export const isHeldAt = ({ leaseId, availableAt }: JobRecord, at: Date) =>
  leaseId !== undefined && availableAt !== undefined && availableAt > at

export function statusOf(record: JobRecord, at: Date) {
  const { id, kind, accountId, requestedAt, availableAt, expiresAt, attempts, reason } = record
  return {
    id,
    /** Another text than a kind of ours: the record was damaged. */
    kind,
    /** `dead`: nobody will try again. */
    state: record.state === 'dead' ? ('dead' as const) : ('waiting' as const),
    accountId,
    requestedAt,
    /** When a worker takes it next; in the past while all are busy. `undefined`: never. */
    nextAttemptAt: availableAt,
    expiresAt,
    attempts,
    reason,
    /** Whether a worker holds it. */
    isHeld: isHeldAt(record, at),
  }
}

/**
 * The place of a request in time. Of two requests for a mail the later one wins, in any order of the mails. Within one
 * millisecond the ids decide. Of one request the later attempt wins: a worker that lost the job cannot undo what its successor
 * did.
 */
export interface RequestOrder {
  /** Time of the database. */
  requestedAt: Date
  mailJobId: string
  /** 0: before any attempt. */
  attempt: number
}

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
