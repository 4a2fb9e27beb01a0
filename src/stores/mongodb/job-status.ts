import type { MailJobStatus } from '../../ports/index.ts'
import { fromDocument, storedName } from './fields.ts'

/** Nothing that was typed. */
const types = {
  state: 'string|undefined',
  kind: 'string|undefined',
  accountId: 'string|undefined',
  requestedAt: 'date|undefined',
  availableAt: 'date|undefined',
  expiresAt: 'date|undefined',
  attempts: 'int|undefined',
  reason: 'string|undefined',
  leaseId: 'string|undefined',
} as const

export const statusFields = Object.fromEntries(
  Object.keys(types).map((name) => [storedName(name), 1] as const),
)

/** Of a record that may be damaged. */
export function toJobStatus(document: { _id: unknown }, at: Date): MailJobStatus {
  const {
    state,
    kind = 'unreadable',
    availableAt,
    attempts = 0,
    leaseId,
    ...told
  } = fromDocument(document, types)
  const isDead = state === 'dead'
  return {
    ...told,
    id: toJobId(document._id),
    kind,
    state: isDead ? 'dead' : 'waiting',
    nextAttemptAt: isDead ? undefined : availableAt,
    attempts: Math.max(attempts, 0),
    isHeld: !isDead && leaseId !== undefined && availableAt !== undefined && availableAt > at,
  }
}

export function toJobId(id: unknown): string {
  return typeof id === 'string' ? id : JSON.stringify(id)
}
