import type { ClaimedReset, NewToken, Token } from '../../ports/index.ts'
import { eightDaysAfter } from '../../ports/week.ts'
import { carriedTypes, fromCarriedFields, toCarriedFields } from './carried.ts'
import { text, time } from './conditions.ts'
import { fromRequesterFields, type RequesterFields, requesterTypes } from './requester.ts'
import { type FieldTypes, type Fields, hasTypes } from './values.ts'

const required = {
  _id: 'string',
  token_hash: 'string',
  user_id: 'string',
  email: 'string',
  password_digest: 'string',
  requested_at: 'date',
  mail_job_id: 'string',
  attempt: 'int',
  created_at: 'date',
  expires_at: 'date',
  used_at: ['date', 'null'],
  purge_at: 'date',
} as const
/** `locale`: the language of the mail. */
const optional = { ...carriedTypes, locale: 'string', pending_login_id: 'string' } as const

/** A document of `email_verification_tokens`, and what all documents of tokens have in common. */
export interface TokenDocument extends Fields<typeof required, typeof optional> {}

/** A document of `password_reset_tokens` or `invitation_tokens`. */
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

export type AnyTokenDocument = TokenDocument & Partial<ResetTokenDocument>

/** Alive, or dead for a reason. */
export function isWholeVerification(document: TokenDocument): boolean {
  return hasTypes(document, required, optional)
}

const ends = ['claimed_at', 'used_at', 'invalidated_at'] as const
const anyEnds: FieldTypes = {
  claimed_at: ['date', 'null'],
  invalidated_at: ['date', 'null'],
  completed_at: ['date', 'null'],
}

/** Likewise. */
export function isWholeReset(document: AnyTokenDocument): boolean {
  const isDecided = ends.some((end) => document[end] instanceof Date)
  return (
    (document.live === true || isDecided) &&
    hasTypes(document, { ...required, ...anyEnds }, { ...optional, live: 'bool' })
  )
}

const claimed: FieldTypes = {
  claimed_at: 'date',
  invalidated_at: 'null',
  completed_at: 'null',
  lease_until: 'date',
}

/** Decided, and not all of its effects are done. */
export function isClaimed(document: ResetTokenDocument): boolean {
  const ofClaim: FieldTypes = { new_hash: 'string', claimed_by: { optional: requesterTypes } }
  return isWholeReset(document) && hasTypes(document, claimed, ofClaim)
}

export function toTokenDocument(token: NewToken): TokenDocument {
  const { locale, pendingLoginId } = token
  return {
    _id: token.id,
    token_hash: token.tokenHash,
    user_id: text(token.userId),
    email: token.email,
    password_digest: token.passwordDigest,
    ...toCarriedFields(token.carried),
    ...(locale !== undefined && { locale }),
    ...(pendingLoginId !== undefined && { pending_login_id: pendingLoginId }),
    requested_at: time(token.requestedAt),
    mail_job_id: token.mailJobId,
    attempt: token.attempt,
    created_at: time(token.createdAt),
    expires_at: time(token.expiresAt),
    used_at: null,
    purge_at: eightDaysAfter(token.expiresAt),
  }
}

export function fromTokenDocument(document: AnyTokenDocument): Token {
  return {
    id: document._id,
    userId: document.user_id,
    email: document.email,
    passwordDigest: document.password_digest,
    carried: fromCarriedFields(document),
    locale: document.locale,
    pendingLoginId: document.pending_login_id,
    requestedAt: document.requested_at,
    mailJobId: document.mail_job_id,
    attempt: document.attempt,
    createdAt: document.created_at,
    expiresAt: document.expires_at,
    usedAt: document.used_at ?? undefined,
    claimedAt: document.claimed_at ?? undefined,
    invalidatedAt: document.invalidated_at ?? undefined,
    completedAt: document.completed_at ?? undefined,
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
