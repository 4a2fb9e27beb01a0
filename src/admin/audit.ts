import * as z from 'zod'
import { newId } from '../crypto/token.ts'
import { isStoreUnavailable } from '../errors.ts'
import type { RecordedEvent } from '../contract/index.ts'
import { AUDIT_EVENT_TYPES } from '../contract/audit.ts'
import { operation, type AdminCaller, type AdminParts } from './operation.ts'
import { given, givenTime, limit, object, oneOf, optional, text, time, wireOf } from './schema.ts'
import { usernamesOf, type NameOf } from './usernames.ts'

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

export const auditOperations = {
  listAudit: operation({
    route: 'GET /audit',
    scope: 'account-flows:read',
    summary: 'Events of the audit log.',
    query: z.strictObject({
      account_id: optional(given, 'Of one account.'),
      type: optional(
        z
          .array(oneOf(AUDIT_EVENT_TYPES), `one of ${AUDIT_EVENT_TYPES.join(', ')}`)
          .describe('Type of event; may be repeated.'),
      ),
      recorded_from: optional(givenTime, 'Only what was recorded then or later.'),
      limit,
    }),
    answer: AuditLog,
    async run({ query }, { store, users }) {
      const { account_id: accountId, type: types, recorded_from: recordedFrom, limit } = query
      const events = await store.audit.list({ accountId, types, recordedFrom, limit })
      const nameOf = await usernamesOf(users, events)
      return { events: events.map((event) => eventShape(event, nameOf)) }
    },
  }),
}

/** Records what an admin does, and who it is; before it is done. */
export function recordAction(
  { audit, clock }: AdminParts,
  { actor, requester }: AdminCaller,
  action: string,
  about: { accountId?: string | undefined; details?: Record<string, string | string[]> } = {},
): Promise<void> {
  return audit({
    id: newId(),
    type: 'admin_action',
    at: clock.now(),
    accountId: about.accountId,
    details: { action, actor, ...about.details },
    ...requester,
  })
}

/** Whether something was recorded that is so already: whoever asked is not told that it failed. Where it was not, the log says so. */
export async function isRecorded(
  { log }: AdminParts,
  recorded: Promise<void>,
  what: string,
  details?: Parameters<AdminParts['log']>[2],
): Promise<boolean> {
  try {
    await recorded
    return true
  } catch (error) {
    const code = isStoreUnavailable(error) ? 'ERR_STORE_UNAVAILABLE' : String(error)
    log('error', `${what} was not recorded`, { ...details, error: code })
    return false
  }
}

export const eventShape = (event: RecordedEvent, nameOf: NameOf) =>
  wireOf(AuditEvent, { ...event, username: nameOf(event.accountId) })
