import * as z from 'zod'
import { AUDIT_EVENT_TYPES } from '../contract/audit.ts'
import type { Log, RecordedEvent, UserStore } from '../contract/index.ts'
import { isStoreUnavailable } from '../errors.ts'
import { operation } from './operation.ts'
import { given, givenTime, limit, object, oneOf, optional, text, time, wireOf } from './schema.ts'

export type AuditEvent = z.infer<typeof AuditEvent>
export const AuditEvent = object('An event of the audit log.', {
  id: text,
  type: text,
  at: time,
  recorded_at: time,
  account_id: optional(text),
  username: optional(text, 'Of the account, as it is now.'),
  address: optional(text),
  user_agent: optional(text),
  client_id: optional(text),
  reason: optional(text),
  details: optional(z.record(z.string(), z.unknown())),
})

export type AuditLog = z.infer<typeof AuditLog>
export const AuditLog = object('Events, the last recorded one first.', {
  events: z.array(AuditEvent),
})

export const listAudit = operation('GET /audit', 'account-flows:read', {
  summary: 'Events of the audit log.',
  query: z.strictObject({
    account_id: optional(given, 'Of one account.'),
    type: optional(
      z.array(oneOf(AUDIT_EVENT_TYPES), `one of ${AUDIT_EVENT_TYPES.join(', ')}`),
      'Type of event; may be repeated.',
    ),
    recorded_from: optional(givenTime, 'Only what was recorded then or later.'),
    limit,
  }),
  answer: AuditLog,
  async run({ query }, { store, users }) {
    const { account_id: accountId, type: types, recorded_from: recordedFrom, limit } = query
    const events = await store.audit.list({ accountId, types, recordedFrom, limit })
    const named = await usernamesFor(users, events)
    return { events: events.map((event) => wireOf(AuditEvent, named(event))) }
  },
})

const AT_ONCE = 50

type OfAccount = Pick<RecordedEvent, 'accountId'>

/** Returns what adds to a record the username of its account, for people. While the user store cannot be reached, it adds none. */
export async function usernamesFor(users: UserStore, records: readonly OfAccount[]) {
  const ids = [...new Set(records.flatMap(({ accountId }) => accountId ?? []))]
  const names = new Map<string | undefined, string>()
  try {
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const found = await Promise.all(ids.slice(at, at + AT_ONCE).map((id) => users.findById(id)))
      for (const user of found) if (user) names.set(user.id, user.username)
    }
  } catch (error) {
    if (!isStoreUnavailable(error)) throw error
  }
  return <T extends OfAccount>(record: T) => ({ ...record, username: names.get(record.accountId) })
}

/** Whether the event of an action that is already done was recorded. If it was not, only the log says so. */
export async function isRecorded(log: Log, recorded: Promise<void>, what: string, details = {}) {
  try {
    await recorded
    return true
  } catch (error) {
    const code = isStoreUnavailable(error) ? 'ERR_STORE_UNAVAILABLE' : String(error)
    log('error', `${what} was not recorded`, { ...details, error: code })
    return false
  }
}
