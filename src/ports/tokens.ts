import type { CarriedParameters, Requester, RequestOrder } from './requests.ts'

/** What both kinds of token have in common. The raw token is never in it (5.5). */
interface StoredToken {
  id: string
  /** Lower-case hex SHA-256 of the 43 characters of the raw token. */
  tokenHash: string
  userId: string
  /** The address that the link was mailed to; the token is void once the user has another one. */
  email: string
  /** Digest of the password hash that the token was issued for; void once it is another one. */
  passwordDigest: string
  carried: CarriedParameters
  createdAt: Date
  expiresAt: Date
}

/** An account as a token knows it: with another address or password the token is void. */
export type IssuedAccount = Pick<StoredToken, 'userId' | 'email' | 'passwordDigest'>

/** One token, or all of one user. */
export type Revoked = { id: string } | { userId: string }

/** With the request that it was issued for. */
export interface ResetToken extends StoredToken, RequestOrder {}

/** A reset token whose reset is decided; what is left to do is in the record. */
export interface ClaimedReset extends ResetToken {
  claimedAt: Date
  /** Who posted the new password. */
  claimedBy: Requester
  /** `undefined` once the password is replaced and the token is marked used. */
  newHash: string | undefined
  /** `undefined` until effect 2 of section 3.3. */
  usedAt: Date | undefined
}

export interface ResetClaim {
  newHash: string
  by: Requester
  at: Date
  leaseUntil: Date
}

/** Why a genuine token is not usable any more. */
export interface DeadToken {
  userId: string
  /** What it was issued for. `undefined`: the record was damaged. */
  email: string | undefined
  passwordDigest: string | undefined
  carried: CarriedParameters
  reason: 'used' | 'invalidated' | 'expired'
}

export interface DeadVerificationToken extends DeadToken {
  /** The login that waited for it. `undefined`: none did. */
  pendingLoginId: string | undefined
}

/**
 * `password_reset_tokens` (2.1, 3.1). A usable token is unused, not claimed, not invalidated and not expired; a record with a
 * missing field, or a field of another type, is not usable.
 */
export interface ResetTokenStore extends TokenHistories {
  /**
   * Saves a live token and invalidates the user's earlier ones: at most one live token per user at any moment, also with
   * concurrent callers. `false`: one of a later request or attempt was issued before, whatever became of it since; nothing
   * changed.
   */
  issue(token: ResetToken): Promise<boolean>
  /** Invalidates the user's live token, unless it is of a later request or attempt. */
  invalidateLive(userId: string, request: RequestOrder, at: Date): Promise<void>
  /** Finds a token that is usable `at` that time. At exactly `expiresAt` it no longer is. */
  findUsable(tokenHash: string, at: Date): Promise<ResetToken | undefined>
  /** Tells why a token is not usable. `undefined`: it is, or there is no such token. */
  findDead(tokenHash: string, at: Date): Promise<DeadToken | undefined>
  /** Whether a token that is usable `at` that time was issued for the account as it is. */
  hasUsable(account: IssuedAccount, at: Date): Promise<boolean>
  /** Lets a token, or all of a user, expire at that time; none that was claimed. */
  revoke(which: Revoked, at: Date): Promise<void>
  /**
   * The commit point of a reset: takes a usable token and stores the new password hash with it, in one step. Of
   * concurrent callers exactly one gets the token. Until `leaseUntil` nobody else finishes it.
   */
  claim(tokenHash: string, claim: ResetClaim): Promise<ClaimedReset | undefined>
  /** Takes one claimed reset that is not completed and whose lease ran out; each is given to one caller. */
  takeUnfinished(at: Date, leaseUntil: Date): Promise<ClaimedReset | undefined>
  /** Effect 2: sets `used_at` and forgets the new hash. Repeated, it changes nothing. Answers the `used_at` in force. */
  markUsed(id: string, at: Date): Promise<Date>
  /** A newer password won: the claimed token becomes invalidated, and its reset is over. */
  reject(id: string, at: Date): Promise<void>
  /** All five effects are done. */
  complete(id: string, at: Date): Promise<void>
}

export interface VerificationToken extends StoredToken, RequestOrder {
  /** The login that waits for this verification. `undefined`: none does. */
  pendingLoginId: string | undefined
}

/** `email_verification_tokens` (2.2, 3.2). All of a user's links live side by side. */
export interface VerificationTokenStore extends TokenHistories {
  issue(token: VerificationToken): Promise<void>
  /** Finds a token that is unused and not expired `at` that time; fails closed like `ResetTokenStore`. */
  findUsable(tokenHash: string, at: Date): Promise<VerificationToken | undefined>
  /** Tells why a token is not usable. `undefined`: it is, or there is no such token. */
  findDead(tokenHash: string, at: Date): Promise<DeadVerificationToken | undefined>
  /**
   * Whether a token that is usable `at` that time was issued for the account as it is.
   *
   * @param ofLogin - only those count that finish a login that waits.
   */
  hasUsable(account: IssuedAccount, at: Date, ofLogin?: boolean): Promise<boolean>
  /** Lets a token that nobody used, or all such of a user, expire at that time. */
  revoke(which: Revoked, at: Date): Promise<void>
  /** Likewise all that were issued for one mail job of the user, in this attempt or before. */
  revokeOf(userId: string, request: RequestOrder, at: Date): Promise<void>
  /** When the last of all tokens that are usable `at` that time expires. `undefined`: none is. */
  latestExpiry(at: Date): Promise<Date | undefined>
  /** Whether a token was issued for a later request of the user, or a later attempt, whatever became of it since. */
  hasLater(userId: string, request: RequestOrder): Promise<boolean>
  /**
   * Sets `used_at`, and lets the user's other links for this address expire, in one step. Repeated, it changes nothing of
   * the token.
   */
  markUsed(token: Pick<VerificationToken, 'id' | 'userId' | 'email'>, at: Date): Promise<void>
}

/** What is known of a token, dead or alive; never the token or its hash. */
export interface TokenHistory {
  id: string
  userId: string
  /** The address that the link was mailed to. */
  email: string
  /** Digest of the password hash that the token was issued for. */
  passwordDigest: string
  carried: CarriedParameters
  /** The request that it was issued for. */
  mailJobId: string
  createdAt: Date
  expiresAt: Date
  /** Effect 2 of 3.3, or the verification. */
  usedAt: Date | undefined
  /** A reset was decided with it. Always `undefined` for a verification token. */
  claimedAt: Date | undefined
  /** A newer one took its place, or its mail was given up. Always `undefined` for a verification token. */
  invalidatedAt: Date | undefined
  /** All effects of the reset are done. Always `undefined` for a verification token. */
  completedAt: Date | undefined
}

/** What both token stores tell. A record that no token of ours can be is as if it were not there. */
export interface TokenHistories {
  /** `undefined`: there is no such token, or it was removed a week after it expired. */
  findHistory(tokenHash: string): Promise<TokenHistory | undefined>
  /** The user's tokens, newest first, at most `limit`. */
  historiesOf(userId: string, limit: number): Promise<TokenHistory[]>
}
