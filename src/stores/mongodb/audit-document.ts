import type { AuditEvent, AuditEventType, RecordedEvent } from '../../ports/index.ts'
import { time } from './conditions.ts'
import { type DocumentOf, fromDocument, hasTypes, toDocument } from './fields.ts'
import { senderTypes } from './request-types.ts'
import { dateOf, isObject } from './values.ts'

type Details = NonNullable<RecordedEvent['details']>

/** A document of `audit_events`. */
export interface AuditDocument extends DocumentOf<typeof types> {
  type: AuditEventType
  /** By the clock of the process. Missing in documents of a version that did not write it. */
  recorded_at?: Date
  /** Likewise. */
  purge_at?: Date
  details?: Details
}

const leastTypes = { id: 'string', type: 'string', at: 'date' } as const

const types = {
  ...leastTypes,
  accountId: 'string?',
  ...senderTypes,
  clientId: 'string?',
  reason: 'string?',
} as const

/** What a damaged record must still have to be told. */
export const isEvent = (document: AuditDocument) => hasTypes(document, leastTypes)

export function toAuditDocument(
  event: AuditEvent,
  recordedAt: Date,
  keepMs: number,
): AuditDocument {
  const { type, details } = event
  return {
    ...toDocument(event, types),
    type,
    recorded_at: recordedAt,
    purge_at: time(new Date(recordedAt.getTime() + keepMs)),
    ...(details !== undefined && { details }),
  }
}

export function fromAuditDocument(document: AuditDocument): RecordedEvent {
  return {
    ...fromDocument(document, types),
    type: document.type,
    recordedAt: dateOf(document.recorded_at) ?? document.at,
    ...(isObject(document.details) && { details: readableDetails(document.details) }),
  }
}

function readableDetails(details: object): Details {
  const readable = Object.entries(details).filter((entry: [string, unknown]) => isDetail(entry[1]))
  return Object.fromEntries(readable)
}

function isDetail(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((each) => typeof each === 'string')
  return typeof value === 'string' || typeof value === 'number'
}
