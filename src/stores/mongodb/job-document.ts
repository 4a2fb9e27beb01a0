import type { Filter } from 'mongodb'
import type { MailJob, MailKind, NewMailJob } from '../../ports/index.ts'
import { type CarriedFields, carriedTypes, fromCarriedFields, toCarriedFields } from './carried.ts'
import { hasTypes, isDate, time } from './conditions.ts'
import {
  fromRequesterFields,
  type RequesterFields,
  requesterTypes,
  toRequesterFields,
} from './requester.ts'

/** A document of `mail_outbox`. */
export interface JobDocument extends RequesterFields {
  _id: string
  /** `requested` until the account is looked up, then `resolved` until the mail left; or one of the two ends. */
  state: 'requested' | 'resolved' | 'superseded' | 'dead'
  kind: MailKind
  identifier?: string
  account_id?: string
  pending_login_id?: string
  send_to?: string
  /** Apart from the rest, because there is a `state` in it too. */
  carried: CarriedFields
  not_before: Date
  expires_at: Date
  requested_at: Date
  /** When the account was looked up. */
  resolved_at?: Date
  /** Nobody may claim it before: `not_before`, then the end of the lease or of the pause before another attempt. */
  available_at?: Date
  attempts: number
  lease_id?: string
  /** Why the last attempt failed. */
  reason?: string
  purge_at?: Date
}

/** What a request of ours has from its beginning to its end. */
const lastingTypes = {
  _id: 'string',
  state: 'string',
  kind: 'string',
  carried: { optional: carriedTypes },
  not_before: 'date',
  attempts: 'int',
} as const

const optionalLastingTypes = {
  identifier: 'string',
  account_id: 'string',
  pending_login_id: 'string',
  send_to: 'string',
  ...requesterTypes,
} as const

const jobTypes = {
  ...lastingTypes,
  expires_at: 'date',
  requested_at: 'date',
  available_at: 'date',
} as const

const kinds: MailKind[] = ['password_reset', 'email_verification', 'password_changed']

const waiting: JobDocument['state'][] = ['requested', 'resolved', 'superseded']

/** More than a job can have in its life. */
const MAX_ATTEMPTS = 1_000_000
const isCount = { $gte: 0, $lt: MAX_ATTEMPTS }

/** What a worker can make sense of. */
export const isReadable = {
  $and: [
    { kind: { $in: kinds }, state: { $in: waiting } },
    hasTypes(jobTypes, { ...optionalLastingTypes, resolved_at: 'date' }),
    { attempts: isCount, not_before: isDate, expires_at: isDate, requested_at: isDate },
    { $or: [{ identifier: { $exists: true } }, { account_id: { $exists: true } }] },
  ],
}

/** A newer version made it, and knows what it is. */
const isOfAnotherVersion: Filter<JobDocument> = {
  $or: [
    { kind: { $type: 'string', $nin: kinds } },
    { state: { $type: 'string', $nin: [...waiting, 'dead'] } },
  ],
}

/** What no worker can make sense of. */
export const isBroken: Filter<JobDocument> = {
  state: { $ne: 'dead' },
  $nor: [isReadable, isOfAnotherVersion],
}

/** A dead letter that a worker can make sense of once it is requested anew. */
export const isRevivable = {
  $and: [
    { kind: { $in: kinds }, state: 'dead' as const },
    hasTypes({ ...lastingTypes, account_id: 'string' }, optionalLastingTypes),
    { attempts: isCount, not_before: isDate },
  ],
}

/** Without `requested_at`, which the database sets. */
export function toJobFields(job: NewMailJob): Omit<JobDocument, '_id' | 'requested_at'> {
  return {
    state: 'requested',
    kind: job.kind,
    ...(job.identifier !== undefined && { identifier: job.identifier }),
    ...(job.accountId !== undefined && { account_id: job.accountId }),
    ...(job.pendingLoginId !== undefined && { pending_login_id: job.pendingLoginId }),
    ...(job.sendTo !== undefined && { send_to: job.sendTo }),
    carried: toCarriedFields(job.carried),
    ...toRequesterFields(job.requester),
    not_before: time(job.notBefore),
    expires_at: time(job.expiresAt),
    available_at: job.notBefore,
    attempts: 0,
  }
}

export function fromJobDocument(document: JobDocument, leaseId: string): MailJob {
  return {
    id: document._id,
    kind: document.kind,
    identifier: document.identifier,
    accountId: document.account_id,
    pendingLoginId: document.pending_login_id,
    ...(document.send_to !== undefined && { sendTo: document.send_to }),
    carried: fromCarriedFields(document.carried),
    requester: fromRequesterFields(document),
    isSuperseded: document.state === 'superseded',
    isResolved: document.resolved_at !== undefined,
    notBefore: document.not_before,
    expiresAt: document.expires_at,
    requestedAt: document.requested_at,
    attempts: document.attempts,
    leaseId,
  }
}
