/** Audit events (6). Each event is recorded once. */
import type { Clock } from '../clock.ts'
import type { AuditEvent, AuditEventType, RecordedEvent } from '../contract/audit.ts'
import { defined, holds, kindOf, type RecordOf } from './kind.ts'
import { firstWanted, type Table } from './table.ts'

export const AUDIT_LOG = kindOf({
  name: 'audit_events',
  fields: {
    type: 'text',
    at: 'time',
    accountId: 'text?',
    address: 'text?',
    userAgent: 'text?',
    clientId: 'text?',
    reason: 'text?',
    details: holds<Record<string, unknown> | undefined>('json?'),
    /** A copy of `details.identifier_hash`, so that an index can find it. */
    identifierHash: 'text?',
    recordedAt: 'time',
    purgeAt: 'time',
  },
  indexes: [
    ['recordedAt'],
    ['type', 'recordedAt'],
    ['accountId', 'recordedAt'],
    ['identifierHash', 'recordedAt'],
  ],
  purgedAt: 'purgeAt',
  isWhole: ({ details = {} }) => !Array.isArray(details) && typeof details === 'object',
})

type EventRecord = RecordOf<typeof AUDIT_LOG>

export interface AuditQuery {
  /** Selects the one event with this id, recorded at any time. */
  id?: string | undefined
  accountId?: string | undefined
  /** The `details.identifier_hash` of a typed name that matches no user. */
  identifierHash?: string | undefined
  types?: AuditEventType[] | undefined
  recordedFrom?: Date | undefined
  limit: number
}

/** How far a time may run ahead of the clock. Beyond that, events of one burst lose their order. */
const MAX_AHEAD_MS = 100

export type AuditLog = ReturnType<typeof auditLog>

export function auditLog(events: Table<EventRecord>, { now }: Pick<Clock, 'now'>) {
  let last = -Infinity

  return {
    /** Keeps the event for `keepMs` from now on, or a little longer. `false`: there is an event with this id, and nothing changes. */
    record(event: AuditEvent, keepMs: number): Promise<boolean> {
      const hash = event.details && Reflect.get(event.details, 'identifier_hash')
      const identifierHash = typeof hash === 'string' ? hash : undefined
      // The times of one process increase, so that its events keep their order even within a millisecond.
      const at = now().getTime()
      last = last >= at && last < at + MAX_AHEAD_MS ? last + 1 : at
      const recordedAt = new Date(last)
      const purgeAt = new Date(last + keepMs)
      return events.insert({ ...event, identifierHash, recordedAt, purgeAt })
    },

    /** The last recorded event first. */
    async list(query: AuditQuery): Promise<RecordedEvent[]> {
      const { id, accountId, identifierHash, types: type, recordedFrom: from, limit } = query
      const equal = defined({ identifierHash, accountId, type })
      const newest = { id, equal, by: 'recordedAt', isDescending: true, limit } as const
      return (await firstWanted(events, { ...newest, ...defined({ from }) })).map(eventOf)
    },
  }
}

export function eventOf({ identifierHash: _hash, purgeAt: _purgeAt, ...event }: EventRecord) {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a record holds what an event was
  return defined(event) as unknown as RecordedEvent
}
