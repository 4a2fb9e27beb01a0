import type { CarriedParameters, LinkEnd, Requester } from '../contract/index.ts'
import type { VerificationReason } from '../contract/requests.ts'
import type { Token } from '../store/index.ts'
import { linkContext, type LinkContext } from './link.ts'
import type { FlowParts } from './parts.ts'

export interface LinkRefusal extends LinkContext {
  /** `verified`: the account was verified by other means, and the link is no longer needed. */
  refusal: 'expired' | 'verified'
  reason: VerificationReason
}

/** Only parameters that we signed are carried on. */
export const unknownLink = (carried: CarriedParameters) =>
  ({ refusal: 'expired', reason: 'unknown', carried, locale: undefined }) as const

/** Recorded once an hour for each link and end: no limit counts GET requests, and they would fill the log. */
export async function refuse(
  parts: FlowParts,
  token: Token,
  reason: VerificationReason,
  end: LinkEnd,
  by: Requester,
) {
  const hour = Math.floor(parts.clock.now().getTime() / 3_600_000)
  const because = reason === 'used' ? 'already_verified' : end
  const event = { ...eventBy(parts, token, by), id: `rejected:${token.id}:${because}:${hour}` }
  await parts.audit({ ...event, type: 'email_verification_rejected', reason: because })
  return { refusal: 'expired', reason, ...linkContext(token) } as const
}

export const eventBy = (
  { clock }: FlowParts,
  { userId: accountId, carried: { clientId } }: Pick<Token, 'userId' | 'carried'>,
  { address, userAgent }: Requester,
) => ({ at: clock.now(), accountId, clientId, address, userAgent })
