import type { ClaimedReset, ResetToken } from '../ports.ts'
import { hasTypes } from './mongodb-conditions.ts'
import {
  fromTokenDocument,
  optionalTokenTypes,
  type TokenDocument,
  tokenTypes,
} from './mongodb-token-document.ts'

/** A document of `password_reset_tokens`. */
export interface ResetTokenDocument extends TokenDocument {
  requested_at: Date
  /** Only while nobody used, claimed or invalidated it; the unique index is on this. */
  live?: true
  claimed_at: Date | null
  invalidated_at: Date | null
  completed_at: Date | null
  /** From the claim until the password is replaced. */
  new_hash?: string
  /** From the claim until the reset is over, one way or the other. */
  lease_until?: Date
}

export const isLive = {
  live: true as const,
  ...hasTypes(
    {
      ...tokenTypes,
      live: 'bool',
      requested_at: 'date',
      claimed_at: 'null',
      used_at: 'null',
      invalidated_at: 'null',
      completed_at: 'null',
    },
    optionalTokenTypes,
  ),
}
export const isClaimed = hasTypes(
  {
    ...tokenTypes,
    requested_at: 'date',
    claimed_at: 'date',
    used_at: ['date', 'null'],
    invalidated_at: 'null',
    completed_at: 'null',
    lease_until: 'date',
  },
  { ...optionalTokenTypes, new_hash: 'string' },
)

export function toResetToken(document: ResetTokenDocument): ResetToken {
  return { ...fromTokenDocument(document), requestedAt: document.requested_at }
}

export function toClaimedReset(document: ResetTokenDocument): ClaimedReset {
  return {
    ...toResetToken(document),
    claimedAt: mustBeClaimed(document),
    newHash: document.new_hash,
    usedAt: document.used_at ?? undefined,
  }
}

function mustBeClaimed({ claimed_at: claimedAt }: ResetTokenDocument): Date {
  if (!claimedAt) throw new TypeError('A claimed reset has a time of its claim')
  return claimedAt
}
