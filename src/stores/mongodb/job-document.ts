import type { Filter } from 'mongodb'
import type { MailJob, MailKind, NewMailJob, RequestOfAccount } from '../../ports/index.ts'
import { isMailKind, mailKinds } from '../../ports/mail-kinds.ts'
import { carriedTypes, fromCarriedFields, toCarriedFields } from './carried.ts'
import { isNot, time } from './conditions.ts'
import { fromRequesterFields, requesterTypes, toRequesterFields } from './requester.ts'
import { dateOf, type Fields, hasTypes } from './values.ts'

/** What a request of ours has from its beginning to its end. */
const lastingTypes = {
  _id: 'string',
  state: 'string',
  kind: 'string',
  /** Apart from the rest, because there is a `state` in it too. */
  carried: { optional: carriedTypes },
  not_before: 'date',
  attempts: 'int',
} as const

const waitingTypes = {
  ...lastingTypes,
  expires_at: 'date',
  requested_at: 'date',
  available_at: 'date',
} as const

const optionalTypes = {
  identifier: 'string',
  account_id: 'string',
  pending_login_id: 'string',
  send_to: 'string',
  of_form: 'bool',
  ...requesterTypes,
} as const

type Known = Omit<Fields<typeof waitingTypes, typeof optionalTypes>, 'available_at'>

/** A document of `mail_outbox`. */
export interface JobDocument extends Known {
  /** `requested` until the account is looked up, then `resolved` until the mail left; or one of the ends. Of one that is `over` only the id is left. */
  state: 'requested' | 'resolved' | 'superseded' | 'dead' | 'over'
  kind: MailKind
  /** When the account was looked up. */
  resolved_at?: Date
  /** Nobody may claim it before: `not_before`, then the end of the lease or of the pause before another attempt. */
  available_at?: Date
  lease_id?: string
  /** Why the last attempt failed. */
  reason?: string
  purge_at?: Date
}

const waiting: JobDocument['state'][] = ['requested', 'resolved', 'superseded']

/** The reason of a dead letter that no worker could make sense of. */
export const UNREADABLE = 'unreadable'

/** More than a job can have in its life. */
const MAX_ATTEMPTS = 1_000_000

const hasCount = ({ attempts }: JobDocument) => attempts >= 0 && attempts < MAX_ATTEMPTS

/** What a worker can make sense of. */
export function isReadable(job: JobDocument): boolean {
  return (
    isMailKind(job.kind) &&
    waiting.includes(job.state) &&
    hasTypes(job, waitingTypes, { ...optionalTypes, resolved_at: 'date' }) &&
    hasCount(job) &&
    (job.identifier !== undefined || job.account_id !== undefined)
  )
}

/** A dead letter that a worker can make sense of once it is requested anew. */
export function isRevivable(letter: JobDocument): boolean {
  return (
    isMailKind(letter.kind) &&
    letter.state === 'dead' &&
    hasTypes(letter, { ...lastingTypes, account_id: 'string' }, optionalTypes) &&
    hasCount(letter)
  )
}

/** What no worker is ever given, or could read; but for what a newer version made, which knows what it is. */
export const isDamaged: Filter<JobDocument> = {
  state: { $nin: ['dead', 'over'] },
  $or: [
    isNot('state', 'string'),
    isNot('kind', 'string'),
    isNot('available_at', 'date'),
    isNot('requested_at', 'date'),
    isNot('expires_at', 'date'),
    isNot('attempts', 'int'),
  ],
  $nor: [
    { kind: { $type: 'string', $nin: mailKinds } },
    { state: { $type: 'string', $nin: [...waiting, 'dead'] } },
  ],
}

/** Without `requested_at`, which the database sets. */
export type JobFields = Omit<JobDocument, '_id' | 'requested_at'>

export function toJobFields(job: NewMailJob): JobFields {
  return {
    state: 'requested',
    kind: job.kind,
    ...(job.identifier !== undefined && { identifier: job.identifier }),
    ...(job.accountId !== undefined && { account_id: job.accountId }),
    ...(job.pendingLoginId !== undefined && { pending_login_id: job.pendingLoginId }),
    ...(job.sendTo !== undefined && { send_to: job.sendTo }),
    ...(job.isOfForm && { of_form: true }),
    carried: toCarriedFields(job.carried),
    ...toRequesterFields(job.requester),
    not_before: time(job.notBefore),
    expires_at: time(job.expiresAt),
    available_at: job.notBefore,
    attempts: 0,
  }
}

export function fromJobDocument(document: JobDocument): MailJob {
  return {
    id: document._id,
    kind: document.kind,
    identifier: document.identifier,
    accountId: document.account_id,
    pendingLoginId: document.pending_login_id,
    ...(document.send_to !== undefined && { sendTo: document.send_to }),
    ...(document.of_form && { isOfForm: true }),
    carried: fromCarriedFields(document.carried),
    requester: fromRequesterFields(document),
    isSuperseded: document.state === 'superseded',
    isResolved: document.resolved_at !== undefined,
    notBefore: document.not_before,
    expiresAt: document.expires_at,
    requestedAt: document.requested_at,
    attempts: document.attempts,
    leaseId: document.lease_id ?? '',
    heldUntil: document.available_at ?? document.not_before,
  }
}

/** `undefined`: nobody could make sense of it. */
export function toRequestOfAccount(document: JobDocument): RequestOfAccount | undefined {
  const { state, reason } = document
  const requestedAt = dateOf(document.requested_at)
  if (!requestedAt || reason === UNREADABLE) return undefined
  return {
    id: document._id,
    requestedAt,
    expiresAt: document.expires_at,
    isResolved: dateOf(document.resolved_at) !== undefined,
    isWaiting: state !== 'superseded' && isReadable(document),
    pendingLoginId: document.pending_login_id,
  }
}
