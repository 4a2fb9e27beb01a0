import type { AuditEvent, AuditEventType, RecordedEvent } from '../../ports/index.ts'
import { time } from './conditions.ts'
import { type SenderFields, toSenderFields } from './requester.ts'
import { dateOf, hasTypes, isObject, stringOf } from './values.ts'

type Details = NonNullable<RecordedEvent['details']>

/** A document of `audit_events`. */
export interface AuditDocument extends SenderFields {
  _id: string
  type: AuditEventType
  at: Date
  /** By the clock of the process. Missing in documents of a version that did not write it. */
  recorded_at?: Date
  /** Likewise. */
  purge_at?: Date
  account_id?: string
  client_id?: string
  reason?: string
  details?: Details
}

/** What a damaged record must still have to be told. */
export function isEvent(document: AuditDocument): boolean {
  return hasTypes(document, { _id: 'string', type: 'string', at: 'date' })
}

export function toAuditDocument(
  event: AuditEvent,
  recordedAt: Date,
  keepMs: number,
): AuditDocument {
  const { id, type, at, accountId, clientId, reason, details } = event
  return {
    _id: id,
    type,
    at: time(at),
    recorded_at: recordedAt,
    purge_at: time(new Date(recordedAt.getTime() + keepMs)),
    ...(accountId !== undefined && { account_id: accountId }),
    ...toSenderFields(event),
    ...(clientId !== undefined && { client_id: clientId }),
    ...(reason !== undefined && { reason }),
    ...(details !== undefined && { details }),
  }
}

export function fromAuditDocument(document: AuditDocument): RecordedEvent {
  const accountId = stringOf(document.account_id)
  const address = stringOf(document.address)
  const userAgent = stringOf(document.user_agent)
  const clientId = stringOf(document.client_id)
  const reason = stringOf(document.reason)
  return {
    id: document._id,
    type: document.type,
    at: document.at,
    recordedAt: dateOf(document.recorded_at) ?? document.at,
    ...(accountId !== undefined && { accountId }),
    ...(address !== undefined && { address }),
    ...(userAgent !== undefined && { userAgent }),
    ...(clientId !== undefined && { clientId }),
    ...(reason !== undefined && { reason }),
    ...(isObject(document.details) && { details: readableDetails(document.details) }),
  }
}

function readableDetails(details: object): Details {
  return Object.fromEntries(
    Object.entries(details).filter(
      (entry: [string, unknown]): entry is [string, string | number | string[]] =>
        isDetail(entry[1]),
    ),
  )
}

function isDetail(value: unknown): value is string | number | string[] {
  if (Array.isArray(value)) return value.every((each) => typeof each === 'string')
  return typeof value === 'string' || typeof value === 'number'
}
