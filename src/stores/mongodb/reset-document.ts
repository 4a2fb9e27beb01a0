import type { ClaimedReset, DeadToken } from '../../ports/index.ts'
import { carriedTypes } from './carried.ts'
import { fromRequesterFields, type RequesterFields, requesterTypes } from './requester.ts'
import {
  type AnyTokenDocument,
  fromDeadDocument,
  fromTokenDocument,
  type TokenDocument,
  tokenTypes,
} from './token-document.ts'
import { type FieldTypes, hasTypes } from './values.ts'

/** A document of `password_reset_tokens`. */
export interface ResetTokenDocument extends TokenDocument {
  /** Only while nobody used, claimed or invalidated it; the unique index is on this. */
  live?: true
  claimed_at: Date | null
  claimed_by?: RequesterFields
  invalidated_at: Date | null
  completed_at: Date | null
  /** From the claim until the password is replaced. */
  new_hash?: string
  /** From the claim until the reset is over, one way or the other. */
  lease_until?: Date
}

const undecided: FieldTypes = {
  ...tokenTypes,
  live: 'bool',
  claimed_at: 'null',
  used_at: 'null',
  invalidated_at: 'null',
  completed_at: 'null',
}

/** Unused, not claimed and not invalidated. */
export function isLive(token: ResetTokenDocument): boolean {
  return token.live === true && hasTypes(token, undecided, carriedTypes)
}

const claimed: FieldTypes = {
  ...tokenTypes,
  claimed_at: 'date',
  used_at: ['date', 'null'],
  invalidated_at: 'null',
  completed_at: 'null',
  lease_until: 'date',
}

/** Decided, and not all of its effects are done. */
export function isClaimed(token: ResetTokenDocument): boolean {
  return hasTypes(token, claimed, {
    ...carriedTypes,
    new_hash: 'string',
    claimed_by: { optional: requesterTypes },
  })
}

const ends = ['claimed_at', 'used_at', 'invalidated_at', 'completed_at'] as const
const anyEnds = Object.fromEntries(ends.map((end) => [end, ['date', 'null'] as const]))

/** Alive, or dead for a reason. */
export function isWhole(token: AnyTokenDocument): boolean {
  const isDecided = ends.some((end) => token[end] instanceof Date)
  return (
    (token.live === true || isDecided) &&
    hasTypes(token, { ...tokenTypes, ...anyEnds }, { ...carriedTypes, live: 'bool' })
  )
}

export function toClaimedReset(document: ResetTokenDocument): ClaimedReset {
  return {
    ...fromTokenDocument(document),
    claimedAt: mustBeClaimed(document),
    claimedBy: fromRequesterFields(document.claimed_by ?? {}),
    newHash: document.new_hash,
    usedAt: document.used_at ?? undefined,
  }
}

/** `undefined`: it is usable. */
export function toDeadToken(document: ResetTokenDocument, at: Date): DeadToken | undefined {
  const reason = whyDead(document, at)
  return reason && { ...fromDeadDocument(document), reason }
}

function whyDead(document: ResetTokenDocument, at: Date): DeadToken['reason'] | undefined {
  const { invalidated_at: invalidated, claimed_at: claimed, used_at: used } = document
  if (invalidated) return 'invalidated'
  if (claimed || used) return 'used'
  return document.expires_at > at ? undefined : 'expired'
}

function mustBeClaimed({ claimed_at: claimedAt }: ResetTokenDocument): Date {
  if (!claimedAt) throw new TypeError('A claimed reset has a time of its claim')
  return claimedAt
}
