import { newId } from '../crypto/token.ts'
import type { RecordedEvent } from '../ports/index.ts'
import type { AuditEvent } from './description.ts'
import { usernamesOf, type NameOf } from './usernames.ts'
import type { AdminEndpoints, AdminParts, AdminRequest, Sent } from './parts.ts'

/** Records what an admin does, and who it is; before it is done. */
export function recordAction(
  { audit, clock }: AdminParts,
  { actor, requester }: Pick<AdminRequest, 'actor' | 'requester'>,
  action: string,
  about: { accountId?: string; details?: Record<string, string | string[]> } = {},
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

export function auditOperations({ store, users }: AdminParts) {
  return {
    async listAudit({ query: { account_id: accountId, type: types, recorded_from: from, limit } }) {
      const events = await store.audit.list({
        ...(accountId !== undefined && { accountId }),
        ...(types !== undefined && { types }),
        ...(from !== undefined && { recordedFrom: new Date(from) }),
        limit,
      })
      const nameOf = await usernamesOf(users, events)
      return { answer: { events: events.map((event) => eventShape(event, nameOf)) } }
    },
  } satisfies Partial<AdminEndpoints>
}

export function eventShape(event: RecordedEvent, nameOf: NameOf): Sent<AuditEvent> {
  return {
    id: event.id,
    type: event.type,
    at: event.at,
    recorded_at: event.recordedAt,
    account_id: event.accountId,
    username: nameOf(event.accountId),
    address: event.address,
    user_agent: event.userAgent,
    client_id: event.clientId,
    reason: event.reason,
    details: event.details,
  }
}
