import type { AuditEvent, AuditLog } from '../ports.ts'

export interface MemoryAuditLog extends AuditLog {
  /** Everything recorded so far, oldest first. */
  events(): AuditEvent[]
}

/** Of more, the oldest are forgotten: it is for development, and anybody can cause events. */
const MAX_EVENTS = 10_000

/** `audit_events` in memory. */
export function memoryAudit(): MemoryAuditLog {
  const events = new Map<string, AuditEvent>()
  return {
    async record(event) {
      if (events.has(event.id)) return false
      events.set(event.id, structuredClone(event))
      const [oldest] = events.keys()
      if (events.size > MAX_EVENTS && oldest !== undefined) events.delete(oldest)
      return true
    },
    async has(id) {
      return events.has(id)
    },
    events() {
      return structuredClone([...events.values()])
    },
  }
}
