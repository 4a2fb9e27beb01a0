import { hashToken } from '../crypto/token.ts'
import type { AuditEvent, Requester, VerificationToken } from '../ports/index.ts'

const HOUR_MS = 3_600_000

export type RejectedToken = Pick<VerificationToken, 'tokenHash' | 'userId' | 'carried'>

/**
 * A link that was refused, and why; for the audit log alone. Once an hour for each link and reason: a link is opened by a GET,
 * which nobody counts, and would fill the log.
 */
export function rejected(
  { tokenHash, userId, carried }: RejectedToken,
  reason: string,
  at: Date,
  { address, userAgent }: Requester,
): AuditEvent {
  const hour = Math.floor(at.getTime() / HOUR_MS)
  return {
    id: `rejected:${hashToken(`${tokenHash} ${reason} ${hour}`)}`,
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
