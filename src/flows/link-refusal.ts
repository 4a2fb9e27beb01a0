import type { CarriedParameters, LinkEnd, Requester } from '../ports/index.ts'
import type { VerificationReason } from '../ports/links.ts'
import type { Token } from '../records/index.ts'
import { contextOf, type LinkContext } from './link.ts'
import type { FlowParts } from './parts.ts'

export interface LinkRefusal extends LinkContext {
  /** `verified`: the account was verified by other means, and the link has nothing left to do. */
  refusal: 'expired' | 'verified'
  reason: VerificationReason
}

/** Nothing is carried on unless we signed it. */
export const unknown = (carried: CarriedParameters) =>
  ({ refusal: 'expired', reason: 'unknown', carried, locale: undefined }) as const

/** Recorded once an hour for each link and end: a link is opened by a GET, which nobody counts, and would fill the log. */
export async function refuse(
  parts: FlowParts,
  token: Token,
  reason: VerificationReason,
  end: LinkEnd,
  by: Requester,
) {
  const hour = Math.floor(parts.clock.now().getTime() / 3_600_000)
  const because = reason === 'used' ? 'already_verified' : end
  const event = { ...about(parts, token, by), id: `rejected:${token.id}:${because}:${hour}` }
  await parts.audit({ ...event, type: 'email_verification_rejected', reason: because })
  return { refusal: 'expired', reason, ...contextOf(token) } as const
}

/** What the audit log tells of a requester who acts on a link. */
export const about = (
  { clock }: FlowParts,
  { userId: accountId, carried: { clientId } }: Pick<Token, 'userId' | 'carried'>,
  { address, userAgent }: Requester,
) => ({ at: clock.now(), accountId, clientId, address, userAgent })
