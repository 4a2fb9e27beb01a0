import type { CarriedParameters, Requester, RequestOrder } from './requests.ts'

/**
 * A token of a reset, an invitation or a verification, dead or alive, with the request that it was issued for. Neither the raw token nor its hash is
 * in it (5.5). What it means, `endOf` says, and `linkState` of the flows together with its account.
 */
export interface Token extends RequestOrder {
  id: string
  userId: string
  /** The address that the link was mailed to; the token is void once the user has another one. */
  email: string
  /** Digest of the password hash that the token was issued for; void once it is another one. */
  passwordDigest: string
  carried: CarriedParameters
  /** The language of its mail (BCP 47), for the pages that its link opens. `undefined`: it is not known. */
  locale: string | undefined
  /** The login that waits for a verification. `undefined`: none does, or it is no token of a verification. */
  pendingLoginId: string | undefined
  createdAt: Date
  expiresAt: Date
  /** When the link did what it is for: the new password was set (effect 2 of 3.3), or the address verified. `undefined`: not yet. */
  usedAt: Date | undefined
  /** A reset was decided with it. Always `undefined` for a verification. */
  claimedAt: Date | undefined
  /** A newer one took its place, its mail was given up, or its reset was refused in the end. Always `undefined` for a verification. */
  invalidatedAt: Date | undefined
  /** All effects of the reset are done. Always `undefined` for a verification. */
  completedAt: Date | undefined
}

type End = 'usedAt' | 'claimedAt' | 'invalidatedAt' | 'completedAt'

/** A token as it is issued. */
export interface NewToken extends Omit<Token, End | 'locale' | 'pendingLoginId'> {
  /** Lower-case hex SHA-256 of the 43 characters of the raw token. */
  tokenHash: string
  locale?: string | undefined
  pendingLoginId?: string | undefined
}

/** A reset, or a first password, that is decided; what is left to do is in the record. */
export interface ClaimedReset extends Token {
  claimedAt: Date
  /** Who posted the new password. */
  claimedBy: Requester
  /** `undefined` once the password is replaced and the token is marked used. */
  newHash: string | undefined
}

/** What a reset is to do, written in the step that claims its token. */
export interface ResetClaim {
  newHash: string
  by: Requester
  at: Date
  leaseUntil: Date
}

/**
 * The steps of a claimed reset. `used`: effect 2, which removes the new hash; not after `rejected`. `rejected`: a newer
 * password won, and the token becomes invalidated; not after `used`. `completed`: all five effects are done; only after `used`.
 */
export type ResetStep = 'used' | 'rejected' | 'completed'

/** One token; all of one user; or those of the user's that were issued up to this attempt for a request. */
export type Revoked = { id: string } | { userId: string; upTo?: RequestOrder }

/** What all stores of tokens do. A record that no token of ours can be is as if it were not there. */
export interface TokenStore {
  /** `undefined`: there is no such token, or it was removed eight days after it expired. */
  find(tokenHash: string): Promise<Token | undefined>
  /** The user's tokens, newest first, at most `limit`. */
  ofUser(userId: string, limit: number): Promise<Token[]>
}

/**
 * Keeps the tokens of reset links, in `password_reset_tokens` (2.1, 3.1). `invitation_tokens` (2.6, 3.4) are the same in a part of
 * their own: there, a reset is the first password.
 */
export interface ResetTokenStore extends TokenStore {
  /**
   * Saves a live token and invalidates earlier ones: at most one live token per user at any moment, also with concurrent
   * callers. `false`: a token of a later request or attempt was issued before, whatever its state is now; nothing changed.
   */
  issue(token: NewToken): Promise<boolean>
  /**
   * Lets what is live of these expire at that time; nothing that was claimed. With `upTo` it is invalidated instead, also what earlier
   * requests left.
   */
  revoke(which: Revoked, at: Date): Promise<void>
  /**
   * The commit point of a reset, in one step: takes a token that is unused, not claimed, not invalidated and not expired. The
   * new password hash is stored with it. Of concurrent callers exactly one gets the token. Nobody else finishes
   * the reset until `leaseUntil`.
   */
  claim(tokenHash: string, claim: ResetClaim): Promise<ClaimedReset | undefined>
  /** Takes one claimed reset that is not completed and whose lease ran out; each is given to one caller. */
  takeUnfinished(at: Date, leaseUntil: Date): Promise<ClaimedReset | undefined>
  /** Takes a claimed reset one step on, atomically. Repeated, it changes nothing. Answers the token; `undefined`: it may not take this step. */
  advance(id: string, step: ResetStep, at: Date): Promise<Token | undefined>
}

/** Keeps the tokens of verification links, in `email_verification_tokens` (2.2, 3.2). All of a user's links live side by side. */
export interface VerificationTokenStore extends TokenStore {
  issue(token: NewToken): Promise<void>
  /** Lets what nobody used of these expire at that time; with `upTo`, of one mail job alone. */
  revoke(which: Revoked, at: Date): Promise<void>
  /**
   * Sets `usedAt`, and lets the user's other links for this address expire. Repeated, it changes nothing of the token.
   */
  use(token: Pick<Token, 'id' | 'userId' | 'email'>, at: Date): Promise<void>
  /** When the last of all tokens expires that nobody used. `undefined`: all have expired `at` that time. */
  latestExpiry(at: Date): Promise<Date | undefined>
}
