import { newId } from '../crypto/token.ts'
import type { AuditEvent, DeadToken, Requester, VerificationToken } from '../ports.ts'

/** A link that was refused, and why; for the audit log alone. */
export function rejected(
  { userId, carried }: Pick<DeadToken, 'userId' | 'carried'>,
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

/** Once for each link, however often it is recorded. */
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
