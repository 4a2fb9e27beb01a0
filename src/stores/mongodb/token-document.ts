import type { ClaimedReset, NewToken, Token } from '../../ports/index.ts'
import { eightDaysAfter } from '../../ports/week.ts'
import { text } from './conditions.ts'
import { type DocumentOf, fromDocument, hasTypes, toDocument } from './fields.ts'
import {
  carriedTypes,
  fromRequesterFields,
  type RequesterFields,
  requesterTypes,
} from './request-types.ts'
import { isObject } from './values.ts'

const knownTypes = {
  id: 'string',
  userId: 'string',
  email: 'string',
  passwordDigest: 'string',
  /** The language of the mail. */
  locale: 'string|undefined',
  pendingLoginId: 'string|undefined',
  requestedAt: 'date',
  mailJobId: 'string',
  attempt: 'int',
  createdAt: 'date',
  expiresAt: 'date',
  usedAt: 'date|null',
} as const

const types = { ...knownTypes, ...carriedTypes, tokenHash: 'string', purgeAt: 'date' } as const

const endTypes = {
  claimedAt: 'date|null',
  invalidatedAt: 'date|null',
  completedAt: 'date|null',
} as const

/** A document of `email_verification_tokens`, and what all documents of tokens have in common. */
export interface TokenDocument extends DocumentOf<typeof types> {}

/** A document of `password_reset_tokens` or `invitation_tokens`. */
export interface ResetTokenDocument extends TokenDocument, DocumentOf<typeof endTypes> {
  /** Only while nobody used, claimed or invalidated it; the unique index is on this. */
  live?: true
  claimed_by?: RequesterFields
  /** From the claim until the password is replaced. */
  new_hash?: string
  /** From the claim until the reset is over, one way or the other. */
  lease_until?: Date
}

export type AnyTokenDocument = TokenDocument & Partial<ResetTokenDocument>

/** Alive, or dead for a reason. */
export const isWholeVerification = (document: TokenDocument) => hasTypes(document, types)

/** Likewise. */
export function isWholeReset(document: AnyTokenDocument): boolean {
  const { live, used_at: usedAt, claimed_at: claimedAt, invalidated_at: invalidatedAt } = document
  const isDecided = [usedAt, claimedAt, invalidatedAt].some((end) => end instanceof Date)
  return (
    (live === true || isDecided) && hasTypes(document, { ...types, ...endTypes, live: 'bool?' })
  )
}

/** Decided, and not all of its effects are done. */
export function isClaimed(document: ResetTokenDocument): boolean {
  const { claimed_by: by = {} } = document
  return (
    isWholeReset(document) &&
    hasTypes(document, {
      claimedAt: 'date',
      invalidatedAt: 'null',
      completedAt: 'null',
      leaseUntil: 'date',
      newHash: 'string?',
    }) &&
    isObject(by) &&
    hasTypes(by, requesterTypes)
  )
}

export function toTokenDocument(token: NewToken): TokenDocument {
  const purgeAt = eightDaysAfter(token.expiresAt)
  const record = { ...token, ...token.carried, userId: text(token.userId), purgeAt }
  return toDocument(record, types)
}

export function toLiveDocument(token: NewToken): ResetTokenDocument {
  return { ...toTokenDocument(token), ...toDocument({}, endTypes), live: true }
}

export function fromTokenDocument(document: AnyTokenDocument): Token {
  return {
    ...fromDocument(document, knownTypes),
    ...fromDocument(document, endTypes),
    carried: fromDocument(document, carriedTypes),
  }
}

export function toClaimedReset(document: ResetTokenDocument): ClaimedReset {
  const { claimed_at: claimedAt, claimed_by: by = {}, new_hash: newHash } = document
  if (!claimedAt) throw new TypeError('A claimed reset has a time of its claim')
  return {
    ...fromTokenDocument(document),
    claimedAt,
    claimedBy: fromRequesterFields(by),
    newHash,
  }
}
