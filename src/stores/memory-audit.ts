import type { AuditEvent, AuditLog } from '../ports.ts'

export interface MemoryAuditLog extends AuditLog {
  /** Everything recorded so far, oldest first. */
  events(): AuditEvent[]
}

/** `audit_events` in memory. */
export function memoryAudit(): MemoryAuditLog {
  const events = new Map<string, AuditEvent>()
  return {
    async record(event) {
      if (events.has(event.id)) return false
      events.set(event.id, structuredClone(event))
      return true
    },
    events() {
      return structuredClone([...events.values()])
    },
  }
}
