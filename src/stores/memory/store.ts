import { systemClock } from '../../clock.ts'
import type { AccountFlowsStore, AuditEvent, AuditLog } from '../../ports/index.ts'
import { AUDIT_EVENTS, toldEvent } from '../../records/audit.ts'
import { flowsStore } from '../../records/store.ts'
import { memoryRecords } from './records.ts'

/** The audit log of `memoryStore`, which tests can read whole. */
export interface MemoryAuditLog extends AuditLog {
  /** Everything recorded so far, oldest first. */
  events(): AuditEvent[]
}

/**
 * Keeps everything in this process: for a first try and for tests. Nothing survives a restart, and a second process knows
 * nothing of it.
 */
export function memoryStore(clock = systemClock): AccountFlowsStore & { audit: MemoryAuditLog } {
  const records = memoryRecords(clock)
  const store = flowsStore(records, clock)
  const events = () => records.all(AUDIT_EVENTS).flatMap(toldEvent)
  return {
    ...store,
    audit: { ...store.audit, events },
    inspect: async () => ({ wrongIndexes: [], isVolatile: true }),
  }
}
