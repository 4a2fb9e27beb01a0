import type { MailJobStatus } from '../../ports/index.ts'
import { dateOf, stringOf } from './values.ts'

/** Nothing that was typed. */
export const statusFields = {
  state: 1,
  kind: 1,
  account_id: 1,
  requested_at: 1,
  available_at: 1,
  expires_at: 1,
  attempts: 1,
  reason: 1,
  lease_id: 1,
} as const

type StatusFields = { [Field in keyof typeof statusFields | '_id']?: unknown }

/** Of a record that may be damaged. */
export function toJobStatus(document: StatusFields, at: Date): MailJobStatus {
  const isDead = document.state === 'dead'
  const availableAt = dateOf(document.available_at)
  const isLeased = typeof document.lease_id === 'string'
  return {
    id: toJobId(document._id),
    kind: stringOf(document.kind) ?? 'unreadable',
    state: isDead ? 'dead' : 'waiting',
    accountId: stringOf(document.account_id),
    requestedAt: dateOf(document.requested_at),
    nextAttemptAt: isDead ? undefined : availableAt,
    expiresAt: dateOf(document.expires_at),
    attempts: toCount(document.attempts),
    reason: stringOf(document.reason),
    isHeld: !isDead && isLeased && availableAt !== undefined && availableAt > at,
  }
}

export function toJobId(id: unknown): string {
  return typeof id === 'string' ? id : JSON.stringify(id)
}

function toCount(attempts: unknown): number {
  return typeof attempts === 'number' && Number.isSafeInteger(attempts) && attempts >= 0
    ? attempts
    : 0
}
