import type {
  DeadToken,
  IssuedAccount,
  ResetToken,
  Revoked,
  VerificationToken,
} from '../../ports/index.ts'
import { type CarriedFields, carriedTypes, fromCarriedFields, toCarriedFields } from './carried.ts'
import { text, time } from './conditions.ts'
import { type NamedIndex, purgeIndex } from './indexes.ts'
import { type FieldTypes, hasTypes, stringOf } from './values.ts'
import { purgeTime } from '../state/purge-time.ts'

/** What the documents of both kinds of token have in common. */
export interface TokenDocument extends CarriedFields {
  _id: string
  token_hash: string
  user_id: string
  email: string
  password_digest: string
  requested_at: Date
  mail_job_id: string
  attempt: number
  created_at: Date
  expires_at: Date
  used_at: Date | null
  purge_at: Date
}

/** A token of either kind. */
export interface AnyTokenDocument extends TokenDocument {
  live?: true
  claimed_at?: Date | null
  invalidated_at?: Date | null
  completed_at?: Date | null
}

/** Without `used_at`, of which each state says what it expects. */
export const tokenTypes: FieldTypes = {
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
  purge_at: 'date',
}

/** What is enough to tell why a token is not usable. */
export function isOwned(token: TokenDocument): boolean {
  return hasTypes(token, { user_id: 'string', expires_at: 'date' }, carriedTypes)
}

export const tokenIndexes: NamedIndex[] = [
  { name: 'latest_request', key: { user_id: 1, requested_at: -1 } },
  { name: 'newest_of_user', key: { user_id: 1, created_at: 1 } },
  { name: 'token_hash_unique', key: { token_hash: 1 }, unique: true },
  purgeIndex,
]

/** Of tokens that did not expire: at exactly `expires_at` they have. */
export const isInTime = (at: Date) => ({ expires_at: { $gt: time(at) } })

/** Tokens that were issued for the account as it is. */
export function issuedTo({ userId, email, passwordDigest }: IssuedAccount) {
  return { user_id: text(userId), email: text(email), password_digest: text(passwordDigest) }
}

export function revoked(which: Revoked) {
  return 'id' in which ? { _id: text(which.id) } : { user_id: text(which.userId) }
}

type StoredToken = ResetToken & Omit<VerificationToken, 'pendingLoginId'>

export function toTokenDocument(token: StoredToken): TokenDocument {
  return {
    _id: token.id,
    token_hash: token.tokenHash,
    user_id: text(token.userId),
    email: token.email,
    password_digest: token.passwordDigest,
    ...toCarriedFields(token.carried),
    requested_at: time(token.requestedAt),
    mail_job_id: token.mailJobId,
    attempt: token.attempt,
    created_at: time(token.createdAt),
    expires_at: time(token.expiresAt),
    used_at: null,
    purge_at: purgeTime(token.expiresAt),
  }
}

/** Of a record that may be damaged. */
export function fromDeadDocument(document: TokenDocument): Omit<DeadToken, 'reason'> {
  return {
    userId: document.user_id,
    email: stringOf(document.email),
    passwordDigest: stringOf(document.password_digest),
    carried: fromCarriedFields(document),
  }
}

export function fromTokenDocument(document: TokenDocument): StoredToken {
  return {
    id: document._id,
    tokenHash: document.token_hash,
    userId: document.user_id,
    email: document.email,
    passwordDigest: document.password_digest,
    carried: fromCarriedFields(document),
    requestedAt: document.requested_at,
    mailJobId: document.mail_job_id,
    attempt: document.attempt,
    createdAt: document.created_at,
    expiresAt: document.expires_at,
  }
}
