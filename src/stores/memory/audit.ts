import type { Clock } from '../../clock.ts'
import type { AuditEvent, AuditLog, AuditQuery, RecordedEvent } from '../../ports/index.ts'
import { forgetIn, type Forgetful } from '../state/forget-account.ts'
import { keepNewest, purge } from './purge.ts'

/** The audit log of `memoryStore`, which tests can read whole. */
export interface MemoryAuditLog extends AuditLog {
  /** Everything recorded so far, oldest first. */
  events(): AuditEvent[]
}

interface Entry {
  event: AuditEvent
  recordedAt: Date
  purgeAt: Date
}

export function memoryAudit({ now }: Clock): MemoryAuditLog & Forgetful {
  const recorded = new Map<string, Entry>()
  return {
    async record(event, keepMs) {
      const recordedAt = now()
      purge(recorded, recordedAt)
      if (recorded.has(event.id)) return false
      const purgeAt = new Date(recordedAt.getTime() + keepMs)
      keepNewest(recorded, event.id, { event: structuredClone(event), recordedAt, purgeAt })
      return true
    },

    async list(query) {
      return [...recorded.values()]
        .toReversed()
        .filter((each) => isAskedFor(each, query))
        .slice(0, query.limit)
        .map(toRecordedEvent)
    },

    async forget(accountId, _at, accountHash) {
      for (const { event } of recorded.values()) {
        if (event.accountId !== accountId || event.type !== 'admin_action') continue
        delete event.accountId
        event.details = { ...event.details, account_hash: accountHash }
      }
      return forgetIn(recorded, ({ event }) => event.accountId === accountId)
    },

    events() {
      return structuredClone([...recorded.values()].map(({ event }) => event))
    },
  }
}

function toRecordedEvent({ event, recordedAt }: Entry): RecordedEvent {
  return structuredClone({ ...event, recordedAt })
}

function isAskedFor({ event, recordedAt }: Entry, query: AuditQuery): boolean {
  const { type, accountId: ofAccount, details }: Omit<RecordedEvent, 'recordedAt'> = event
  const { id, accountId, identifierHash, types, recordedFrom } = query
  return (
    (id === undefined || event.id === id) &&
    (accountId === undefined || ofAccount === accountId) &&
    (identifierHash === undefined || details?.['identifier_hash'] === identifierHash) &&
    (types === undefined || types.includes(type)) &&
    (recordedFrom === undefined || recordedAt >= recordedFrom)
  )
}
