/** The stored form of a request for a mail. */
import { z } from 'zod'
import type { MailKind } from '../contract/mail-kinds.ts'
import { NOBODY, type RequestParameters, type Requester } from '../contract/parameters.ts'
import { holds, kindOf, weekAfter, type RecordOf } from './kind.ts'

/** `over`: only the id stays, so that the same form sent again finds it taken. */
type State = 'requested' | 'resolved' | 'superseded' | 'dead' | 'over'

const Given = z.object({
  attempts: z.int().min(0).max(1_000_000),
  parameters: z.record(z.string(), z.string()),
  requester: z.record(z.string(), z.string().or(z.boolean()).optional()),
})

export const MAIL_OUTBOX = kindOf({
  name: 'mail_outbox',
  fields: {
    /** Any text in the record of a version that knows other mails: no worker of this one takes it. */
    kind: holds<MailKind>('text'),
    state: holds<State>('text'),
    /** As typed, until a worker has looked the user up. */
    identifier: 'text?',
    /** `undefined`: no worker has looked it up yet, or no account matches. */
    accountId: 'text?',
    pendingLoginId: 'text?',
    /** The address of the mail, even if the account changes its own. `undefined`: the account's address. */
    sendTo: 'text?',
    /** Whether the account had not verified `sendTo` at the request. Left out: the worker checks this when the mail leaves. */
    isUnverified: 'boolean?',
    parameters: holds<RequestParameters>('json'),
    requester: holds<Requester>('json'),
    /** The id stays taken for a week after the job is over: a form may be sent again, and a notice requested again. */
    keepsId: 'boolean?',
    /** Whether a worker has looked up the account. That worker may have died before it finished. */
    isResolved: 'boolean',
    /** The time of the database, not of the process. */
    requestedAt: 'time',
    notBefore: 'time',
    /** After this time the mail is of no use any more. */
    expiresAt: 'time',
    /** How often workers have taken it to send it, this time included. */
    attempts: 'number',
    leaseId: 'text?',
    /** First `notBefore`, then the end of the lease, or of the pause before another attempt. */
    availableAt: 'time?',
    /** Why the last attempt failed, or why no worker tries again. */
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
export type NewMailJob = Omit<
  JobRecord,
  'state' | 'isResolved' | 'requestedAt' | 'attempts' | 'leaseId' | 'reason'
>

/** A mail that a worker has claimed, until `availableAt`. If its state is `superseded`, it ends without a mail. */
export type MailJob = JobRecord & { leaseId: string; availableAt: Date }

/** A record of the outbox, without the typed identifier and without its lease. */
export type MailJobStatus = ReturnType<typeof statusOf>

export const dead = (record: JobRecord, at: Date, reason: string): JobRecord => ({
  ...record,
  state: 'dead',
  reason,
  identifier: undefined,
  leaseId: undefined,
  availableAt: undefined,
  purgeAt: weekAfter(at),
})

/** Keeps only the id. */
export const emptied = (id: string, at: Date): JobRecord => ({
  id,
  kind: 'password_reset',
  state: 'over',
  parameters: {},
  requester: NOBODY,
  isResolved: false,
  requestedAt: at,
  notBefore: at,
  expiresAt: at,
  attempts: 0,
  purgeAt: weekAfter(at),
})

/** Whether its mail may still leave. */
export const isWaiting = ({ state }: { state: State }): boolean =>
  state === 'requested' || state === 'resolved'

export const isHeldAt = ({ leaseId, availableAt }: JobRecord, at: Date) =>
  leaseId !== undefined && availableAt !== undefined && availableAt > at

/** `nextAttemptAt`: in the past while all workers are busy. `undefined`: never. */
export function statusOf(job: JobRecord, at: Date) {
  const { id, kind, accountId, requestedAt, expiresAt, attempts, reason } = job
  const shown = { id, kind, accountId, requestedAt, expiresAt, attempts, reason }
  const state = job.state === 'dead' ? ('dead' as const) : ('waiting' as const)
  return { ...shown, state, nextAttemptAt: job.availableAt, isHeld: isHeldAt(job, at) }
}

/**
 * The place of a request in time. Of two requests for a mail the later one wins, in any order of the mails. Of one request the later
 * attempt wins: a worker that lost the job cannot undo what its successor did.
 */
export interface RequestOrder {
  requestedAt: Date
  mailJobId: string
  /** 0: before any attempt. */
  attempt: number
}

/** Whether one is the later request, or the later attempt of the same request. Within one millisecond the ids decide. */
export function isLater(one: RequestOrder, other: RequestOrder): boolean {
  const apart = one.requestedAt.getTime() - other.requestedAt.getTime()
  if (apart !== 0) return apart > 0
  if (one.mailJobId !== other.mailJobId) return one.mailJobId > other.mailJobId
  return one.attempt > other.attempt
}

/** The place of an attempt of a job. */
export function orderOf({ id, requestedAt }: JobRecord, attempt = 0): RequestOrder {
  return { requestedAt, mailJobId: id, attempt }
}
