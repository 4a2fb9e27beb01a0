import { newId } from '../crypto/token.ts'
import type { AuditEvent, AuditHistory } from '../ports/index.ts'
import type { AdminEndpoints, AdminRequest } from './router.ts'
import { toEvent } from './shapes.ts'

/** Records what an admin does, and who it is; before it is done. */
export type AuditAction = (
  request: Pick<AdminRequest, 'actor' | 'requester'>,
  action: string,
  about?: { accountId?: string; details?: Record<string, string | number | string[]> },
) => Promise<void>

export function createAuditAction(
  audit: (event: AuditEvent) => Promise<void>,
  now: () => Date,
): AuditAction {
  return ({ actor, requester }, action, { accountId, details } = {}) =>
    audit({
      id: newId(),
      type: 'admin_action',
      at: now(),
      accountId,
      details: { action, actor, ...details },
      ...requester,
    })
}

export function adminAudit(audit: AuditHistory) {
  return {
    async listAudit({ query }) {
      const { account_id: accountId, type: types, recorded_from: from, limit = 50 } = query
      const events = await audit.list({
        ...(accountId !== undefined && { accountId }),
        ...(types !== undefined && { types }),
        ...(from !== undefined && { recordedFrom: new Date(from) }),
        limit,
      })
      return { answer: { events: events.map(toEvent) } }
    },
  } satisfies Partial<AdminEndpoints>
}
