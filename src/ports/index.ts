/**
 * Everything outside the flows: each port has an implementation in memory and one on MongoDB, and one contract suite that
 * both pass.
 *
 * @module
 */
import type { AuditEventType } from './audit-event-types.ts'
import type { AuditHistory, StoreInspection, TokenHistories } from './histories.ts'
import type { PendingLoginStore } from './logins.ts'
import type { MailOutbox } from './mails.ts'

export type { AuditEventType } from './audit-event-types.ts'
export type * from './histories.ts'
export type * from './logins.ts'
export type * from './mails.ts'

/**
 * The OAuth 2.0 parameters carried through the flows (4.2, 4.6, 4.7). An absent parameter and an empty one are two
 * different things: absent is no property at all.
 */
export interface CarriedParameters {
  clientId?: string
  redirectUri?: string
  scope?: string
  state?: string
}

/** Carried parameters that are genuine, or none, and the name of their client. */
export interface IdentifiedClient {
  carried: CarriedParameters
  clientName: string | undefined
}

/** The parts of a user that the flows touch (2.3). */
export interface User {
  /** The `accountId` that the provider knows the user by. */
  id: string
  username: string
  /** `undefined`: the user has no address, and never gets a mail. */
  email: string | undefined
  emailVerified: boolean
  /** A bcrypt hash. `undefined`: the user has no password, and cannot reset one. */
  passwordHash: string | undefined
  disabled: boolean
  /** The language of mails, as a tag such as `de` or `pt-BR`. `undefined`: not known. */
  locale?: string | undefined
}

/**
 * The host's users. A host brings its own, or takes `memoryUsers` or `mongoUsers`. An error with the code
 * `ERR_STORE_UNAVAILABLE` says that they cannot be reached for now: whoever asks is then told to try again (503).
 */
export interface UserStore {
  /** Called once by `flows.start()`: create indexes here. */
  start?(): Promise<void>
  /** `undefined` for whatever is no id of a user: an admin may type any text. */
  findById(id: string): Promise<User | undefined>
  /** Finds the user whose username has exactly these bytes: nothing is trimmed or folded. */
  findByUsername(username: string): Promise<User | undefined>
  /** Finds every user whose verified address equals this one; only ASCII letters match in either case. */
  findByVerifiedEmail(email: string): Promise<User[]>
  /**
   * Compare and set, atomically: replaces the password hash only while it still is `expected`. `false`: it was
   * another one, or the user is gone; nothing changed.
   */
  replacePasswordHash(id: string, expected: string, next: string): Promise<boolean>
  /**
   * Unverified to verified, atomically, and only while the user is enabled and the address still is `email`, byte for
   * byte. Of concurrent callers exactly one gets `true`; `false`: nothing changed. This one step decides which of several
   * links, or of several clicks, verified the address (3.2).
   */
  markEmailVerified(id: string, email: string): Promise<boolean>
}

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

/**
 * Of two requests for a mail the later one wins, in whatever order mails leave; within a millisecond the ids decide, and
 * of one request the later attempt, so that a worker that held the job before cannot take back what its next holder did.
 */
export interface RequestOrder {
  /** Time of the database. */
  requestedAt: Date
  mailJobId: string
  /** 0: before any attempt. */
  attempt: number
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

/** `undefined`: nothing of that kind was ever ended. */
export interface SessionCutoffs {
  /** Sessions and interactions of logins that have not seen it are dead. */
  idpAt: Date | undefined
  /** Grants, codes and tokens likewise. */
  oauthAt: Date | undefined
}

/** `session_cutoffs`. Reads see every write that was answered before, in any process. */
export interface SessionCutoffStore {
  /** `undefined`: nothing was ever ended for this account. */
  read(accountId: string): Promise<SessionCutoffs | undefined>
  /**
   * Effect 3. A cut-off only moves forward: to this time, or where it is there or later by a millisecond, so that each end can be told
   * from the one before, whatever the clocks say; not so if `isExact`. The same time once more changes nothing, so that an effect can
   * be repeated. Answers the cut-offs.
   */
  endOAuthSessions(accountId: string, at: Date, isExact?: boolean): Promise<SessionCutoffs>
  /** Effect 4. Likewise. */
  endIdpSessions(accountId: string, at: Date, isExact?: boolean): Promise<SessionCutoffs>
}

/** How many records were deleted. `undefined`: the adapter cannot tell. */
export type EndedCount = number | undefined

/** What an account has at the provider. What is of a later login stays. */
export interface AccountSessions {
  /** Ends grants, codes and tokens of all logins until now; if `isExact`, only where none were ended at `at` or later (3.3, effect 3). */
  endOAuthSessions(accountId: string, at: Date, isExact?: boolean): Promise<EndedCount>
  /** Ends sessions and login results likewise (3.3, effect 4). */
  endIdpSessions(accountId: string, at: Date, isExact?: boolean): Promise<EndedCount>
}

/** Who sent the request, for the audit log; and for the mail of the request, which language it asked for. */
export interface Requester {
  address: string | undefined
  userAgent: string | undefined
  /** `ui_locales` of the request. Kept with a mail job as far as it is language tags, 100 characters at most; never audited. */
  uiLocales?: string | undefined
  /** The tags of the header `Accept-Language`, best first, with commas between them. Kept likewise, and never audited. */
  acceptLanguage?: string | undefined
  /** An admin asked for the mail: neither language nor browser of the request are those of its reader. Never audited. */
  isAdmin?: boolean
}

/** Never a token, a password, or an identifier that a stranger typed. */
export interface AuditEvent {
  /** Unique: an event is recorded once, however often it is repeated. */
  id: string
  type: AuditEventType
  at: Date
  accountId?: string | undefined
  address?: string | undefined
  userAgent?: string | undefined
  clientId?: string | undefined
  reason?: string | undefined
  /** Such as the keys of changed settings, or counts of ended sessions. */
  details?: Record<string, string | number | string[] | undefined>
}

/** `audit_events`. */
export interface AuditLog extends AuditHistory {
  /**
   * Keeps the event for `keepMs` from now on; then it is removed, be it somewhat later. `false`: one with this id was recorded
   * before; nothing changed.
   */
  record(event: AuditEvent, keepMs: number): Promise<boolean>
  /** Whether an event with this id was recorded. */
  has(id: string): Promise<boolean>
}

export interface StoredSettings {
  /** Grows with each write; 0 before the first. */
  version: number
  /** As sent over the wire; secrets are encrypted. */
  values: Record<string, string>
  /** The record was edited by hand, and is no settings any more. It is kept as it is: nothing is written until it can be read. */
  isUnreadable?: boolean
}

/** `settings` (2.5). */
export interface SettingsStore {
  read(): Promise<StoredSettings>
  /** Replaces all values, atomically, only while the version still is `expectedVersion`. `false`: it was another one. */
  write(values: Record<string, string>, expectedVersion: number): Promise<boolean>
}

/** What was counted under one key, this time included. */
export interface Hit {
  count: number
  /** Milliseconds until the window of the key ends; from 0 to the length of the window. */
  msToEnd: number
}

/** `rate_limits`: counts in windows that begin with the first hit. How much is too much, others judge. */
export interface RateLimits {
  /**
   * Counts one more under the key, atomically: of concurrent callers, in any process, no two get the same count. A window that
   * would last longer than `windowMs`, because a clock was set back or the window was longer before, begins anew.
   */
  hit(key: string, windowMs: number): Promise<Hit>
  /** Milliseconds until the window of the key ends. 0: it has none. Counts nothing. */
  msToEnd(key: string): Promise<number>
}

/** How many records of an account were removed, by what they are. */
export interface ForgottenAccount {
  mails: number
  resetTokens: number
  verificationTokens: number
  pendingLogins: number
  events: number
  /** Resets that are being finished, and mails that a worker holds: they are still there. */
  underWay: number
}

/** The keys of one process: the first signs, all verify. */
export interface NotedKeyRing {
  processId: string
  keyIds: string[]
}

/** `key_rings`: the keys of the processes that share the store, by ids that tell nothing about them. */
export interface KeyRings {
  /** Notes the ids of the keys of a process, in place of those of before. None: it has ended, and its note goes. */
  note(processId: string, keyIds: readonly string[]): Promise<void>
  /** What was noted within the last so many milliseconds, by the time of the database. */
  noted(withinMs: number): Promise<NotedKeyRing[]>
}

/** Everything that the flows store, on one technology. */
export interface AccountFlowsStore {
  resetTokens: ResetTokenStore
  verificationTokens: VerificationTokenStore
  pendingLogins: PendingLoginStore
  cutoffs: SessionCutoffStore
  outbox: MailOutbox
  audit: AuditLog
  settings: SettingsStore
  limits: RateLimits
  keyRings: KeyRings
  /** Creates collections and indexes; idempotent, and safe when several processes start at once. */
  start(): Promise<void>
  /** Time of the database. */
  now(): Promise<Date>
  /**
   * Removes all that is about one account, whether or not there is a user of that id: its mails, links, logins that wait, and events.
   * Its cut-offs stay, so that nothing that was ended comes back, and so does what is under way `at` that time. What admins did to it
   * (`admin_action`) stays too, without its id and with `accountHash` as `details.account_hash`. Repeated, it removes what came since.
   */
  forget(accountId: string, at: Date, accountHash: string): Promise<ForgottenAccount>
  /** Looks whether everything is as `start` left it. `undefined`: the store cannot tell. */
  inspect?(): Promise<StoreInspection>
}

/** Where warnings and failures go: never a token, a password, a key or a typed identifier. */
export type Log = (
  level: 'info' | 'warn' | 'error',
  message: string,
  details?: Record<string, string | number | string[]>,
) => void
