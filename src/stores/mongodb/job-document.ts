import type { Filter } from 'mongodb'
import type { MailJob, MailKind, NewMailJob, RequestOfAccount } from '../../ports/index.ts'
import { isMailKind, mailKinds } from '../../ports/mail-kinds.ts'
import { isNot, text, time } from './conditions.ts'
import { type DocumentOf, fromDocument, hasTypes, toDocument } from './fields.ts'
import {
  carriedTypes,
  fromRequesterFields,
  requesterTypes,
  toRequesterFields,
} from './request-types.ts'
import { dateOf } from './values.ts'

/** What a request of ours has from its beginning to its end. */
const lastingTypes = {
  id: 'string',
  kind: 'string',
  identifier: 'string|undefined',
  accountId: 'string|undefined',
  pendingLoginId: 'string|undefined',
  sendTo: 'string?',
  isClaim: 'bool?',
  /** Apart from the rest, because there is a `state` in it too. */
  carried: carriedTypes,
  notBefore: 'date',
  attempts: 'int',
} as const

const jobTypes = { ...lastingTypes, expiresAt: 'date', requestedAt: 'date' } as const

/** What is under other names in the code. */
const otherTypes = { ...requesterTypes, state: 'string', ofForm: 'bool?' } as const

type Known = DocumentOf<typeof jobTypes & typeof otherTypes>

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
    hasTypes(job, { ...jobTypes, ...otherTypes, availableAt: 'date', resolvedAt: 'date?' }) &&
    hasCount(job) &&
    (job.identifier !== undefined || job.account_id !== undefined)
  )
}

/** A dead letter that a worker can make sense of once it is requested anew. */
export function isRevivable(letter: JobDocument): boolean {
  return (
    isMailKind(letter.kind) &&
    letter.state === 'dead' &&
    hasTypes(letter, { ...lastingTypes, ...otherTypes, accountId: 'string' }) &&
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
export type NewJobDocument = Omit<JobDocument, 'requested_at'>

export function toJobDocument(job: NewMailJob): NewJobDocument {
  const { kind, expiresAt, notBefore, requester, isOfForm } = job
  return {
    ...toDocument({ ...job, attempts: 0 }, lastingTypes),
    ...toRequesterFields(requester),
    _id: text(job.id),
    state: 'requested',
    kind,
    ...(isOfForm && { of_form: true }),
    expires_at: time(expiresAt),
    available_at: notBefore,
  }
}

export function fromJobDocument(document: JobDocument): MailJob {
  return {
    ...fromDocument(document, jobTypes),
    kind: document.kind,
    ...(document.of_form && { isOfForm: true }),
    requester: fromRequesterFields(document),
    isSuperseded: document.state === 'superseded',
    isResolved: document.resolved_at !== undefined,
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
