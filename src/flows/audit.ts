import { EventEmitter } from 'node:events'
import type { AuditEvent, AuditLog, Log, Requester } from '../ports/index.ts'

export type AuditEvents = EventEmitter<{ audit: [AuditEvent]; error: [unknown] }>

export interface Audit {
  /** Records an event once, and tells the host's listeners; what they do cannot break what is audited. */
  record(event: AuditEvent): Promise<void>
  events: AuditEvents
}

/** @param keepMs - how long an event is kept that is recorded now. */
export function createAudit(store: AuditLog, keepMs: () => number, log: Log): Audit {
  const events: AuditEvents = new EventEmitter({ captureRejections: true })
  const failed = (error: unknown) =>
    log('error', 'a listener of the audit events failed', { error: String(error) })
  events.on('error', failed)
  return {
    events,

    async record(given) {
      const event = withoutLanguages(given)
      if (!(await store.record(event, keepMs()))) return
      try {
        events.emit('audit', event)
      } catch (error) {
        failed(error)
      }
    },
  }
}

/** Whoever sent the request is in many events as a whole; what it read in is for its mail alone. */
function withoutLanguages(given: AuditEvent & Partial<Requester>): AuditEvent {
  const {
    uiLocales: _uiLocales,
    acceptLanguage: _acceptLanguage,
    isAdmin: _isAdmin,
    ...event
  } = given
  return event
}
