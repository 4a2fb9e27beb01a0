import { newId } from '../crypto/token.ts'
import type { AuditEvent, DeadToken, Requester, VerificationToken } from '../ports.ts'

/** What is told of a link that did nothing. */
export type RefusedToken = Pick<DeadToken, 'userId' | 'carried'>

export function rejected(
  { userId, carried }: RefusedToken,
  reason: string,
  at: Date,
  { address, userAgent }: Requester,
): AuditEvent {
  return {
    id: newId(),
    type: 'email_verification_rejected',
    at,
    accountId: userId,
    clientId: carried.clientId,
    reason,
    address,
    userAgent,
  }
}

/** Recorded twice, it is one event. */
export function completed(
  { id, userId, carried }: VerificationToken,
  at: Date,
  { address, userAgent }: Requester,
): AuditEvent {
  return {
    id: `verified:${id}`,
    type: 'email_verification_completed',
    at,
    accountId: userId,
    clientId: carried.clientId,
    address,
    userAgent,
  }
}
