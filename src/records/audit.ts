/** What happened (6): each event once. */
import type { Clock } from '../clock.ts'
import type { AuditEvent, AuditLog, AuditQuery, RecordedEvent } from '../ports/index.ts'
import type { Stored } from '../ports/record-store.ts'
import { kindOf } from './kind.ts'
import type { Records } from './records.ts'
import { firstWanted } from './scan.ts'
import { type QueryOf, tableOf } from './table.ts'

interface EventRecord {
  id: string
  type: string
  at: Date
  accountId: string | undefined
  address: string | undefined
  userAgent: string | undefined
  clientId: string | undefined
  reason: string | undefined
  details: Record<string, unknown> | undefined
  /** Of the details, to be found by. */
  identifierHash: string | undefined
  recordedAt: Date
  purgeAt: Date
}

export const AUDIT_EVENTS = kindOf<EventRecord>({
  name: 'audit_events',
  fields: {
    type: 'text',
    at: 'time',
    accountId: 'text?',
    address: 'text?',
    userAgent: 'text?',
    clientId: 'text?',
    reason: 'text?',
    details: 'json?',
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

/** Of more at once, the order is lost. */
const MOST_AHEAD_MS = 100

export function auditLog(records: Records, { now }: Pick<Clock, 'now'>): AuditLog {
  const events = tableOf(records, AUDIT_EVENTS)
  let last = -Infinity
  /** Events of one process are told in the order in which they were recorded, though several come in a millisecond. */
  function inOrder(): Date {
    const at = now().getTime()
    last = last >= at && last < at + MOST_AHEAD_MS ? last + 1 : at
    return new Date(last)
  }

  return {
    record: (event, keepMs) => events.insert(newRecord(event, inOrder(), keepMs)),

    async list(query) {
      if (query.id !== undefined) {
        const event = await events.getReadable(query.id)
        return event && isAsked(event, query) ? [eventOf(event)] : []
      }
      const { recordedFrom: from, limit } = query
      const newest = { by: 'recordedAt', isDescending: true, ...(from && { from }) } as const
      const found = await firstWanted(
        events,
        { ...newest, equal: equalIn(query) },
        limit,
        (event) => isAsked(event, query),
      )
      return found.map(eventOf)
    },
  }
}

/** What an index answers; the rest is looked at. */
function equalIn({
  accountId,
  identifierHash,
  types,
}: AuditQuery): NonNullable<QueryOf<EventRecord>['equal']> {
  if (identifierHash !== undefined) return { identifierHash }
  if (accountId !== undefined) return { accountId }
  return types ? { type: types } : {}
}

function isAsked(event: EventRecord, query: AuditQuery): boolean {
  const { accountId, identifierHash, types, recordedFrom } = query
  return (
    (accountId === undefined || event.accountId === accountId) &&
    (identifierHash === undefined || event.identifierHash === identifierHash) &&
    (!types || types.some((type) => type === event.type)) &&
    (!recordedFrom || event.recordedAt >= recordedFrom)
  )
}

function newRecord(event: AuditEvent, recordedAt: Date, keepMs: number): EventRecord {
  const { id, type, at, accountId, address, userAgent, clientId, reason, details }: Told = event
  const hash = details?.['identifier_hash']
  return {
    id,
    type,
    at,
    accountId,
    address,
    userAgent,
    clientId,
    reason,
    details,
    identifierHash: typeof hash === 'string' ? hash : undefined,
    recordedAt,
    purgeAt: new Date(recordedAt.getTime() + keepMs),
  }
}

type Told = Omit<RecordedEvent, 'recordedAt'>

/** The event of what was read, without the time at which it was recorded. */
export function toldEvent(stored: Stored): AuditEvent[] {
  if (!stored.fields) return []
  const { recordedAt: _recordedAt, ...event } = eventOf(AUDIT_EVENTS.toRecord(stored))
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a record holds what an event was
  return [event as AuditEvent]
}

function eventOf({ identifierHash: _hash, purgeAt: _purgeAt, ...record }: EventRecord) {
  const told = Object.entries(record).filter(([, value]) => value !== undefined)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a record holds what an event was
  return Object.fromEntries(told) as unknown as RecordedEvent
}
