import type { AuditEventType } from './audit-event-types.ts'

export type { AuditEventType } from './audit-event-types.ts'

/** Never a token, a password, or an identifier that a stranger typed. */
export interface AuditEvent {
  /** Unique: an event is recorded once, however often it is repeated. */
  id: string
  type: AuditEventType
  at: Date
  accountId?: string | undefined
  address?: string | undefined
  userAgent?: string | undefined
  clientId?: string | undefined
  reason?: string | undefined
  /** Such as the keys of changed settings, or counts of ended sessions. */
  details?: Record<string, string | number | string[] | undefined>
}

/** `audit_events`. */
export interface AuditLog {
  /**
   * Keeps the event for `keepMs` from now on; then it is removed, be it somewhat later. `false`: one with this id was recorded
   * before; nothing changed.
   */
  record(event: AuditEvent, keepMs: number): Promise<boolean>
  /** The one that was recorded last comes first. */
  list(query: AuditQuery): Promise<RecordedEvent[]>
}

export interface RecordedEvent extends AuditEvent {
  /** When it was written down, by the clock of that process; the event itself may have been earlier. */
  recordedAt: Date
}

export interface AuditQuery {
  /** That one alone. */
  id?: string
  accountId?: string
  /** `details.identifier_hash` of what somebody typed who was not found. */
  identifierHash?: string
  types?: AuditEventType[]
  /** Only what was recorded at this time or later. */
  recordedFrom?: Date
  limit: number
}
