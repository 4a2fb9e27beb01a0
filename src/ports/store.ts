import type { AuditLog } from './audit.ts'
import type { ClientLogoutStore } from './client-logouts.ts'
import type { PendingLoginStore } from './logins.ts'
import type { MailOutbox } from './mails.ts'
import type { NotMeTokenStore } from './not-me-tokens.ts'
import type { ProviderRecords } from './provider-records.ts'
import type { SessionCutoffStore } from './sessions.ts'
import type { ResetTokenStore, VerificationTokenStore } from './tokens.ts'

/** The settings as the store keeps them. */
export interface StoredSettings {
  /** Grows with each write; 0 before the first. */
  version: number
  /** As sent over the wire; secrets are encrypted. */
  values: Record<string, string>
  /**
   * A person edited the record, and it cannot be read any more. It is kept as it is: nothing is written until it can be read.
   */
  isUnreadable?: boolean
  /** The history that was written with the values; `undefined`: somebody removed it. */
  history?: SettingsVersion[]
}

/** One version of the settings, to show what changed and to go back to it. It holds no secret, not even an encrypted one. */
export interface SettingsVersion {
  version: number
  /**
   * By the clock of the process that wrote it. `undefined`: time and person are unknown, because somebody wrote it
   * by hand.
   */
  at?: Date
  actor?: string
  /** Names of the secrets that were changed with it. */
  secrets: string[]
  /** Its values that are no secrets. */
  values: Record<string, string>
}

/** Keeps the settings, in `settings` (2.5). */
export interface SettingsStore {
  read(): Promise<StoredSettings>
  /**
   * Replaces all values, and the history if one is given, in one atomic step, but only if the version still is
   * `expectedVersion`. `false`: it was another one, nothing changed.
   */
  write(
    values: Record<string, string>,
    expectedVersion: number,
    history?: readonly SettingsVersion[],
  ): Promise<boolean>
}

/** What was counted under one key. */
export interface Hit {
  count: number
  /** Milliseconds until the window of the key ends; from 0 to its length. */
  msToEnd: number
}

/** `rate_limits`: counts in windows that begin with the first hit. The caller decides how much is too much. */
export interface RateLimits {
  /**
   * Counts one more under the key, atomically: of concurrent callers, in any process, no two get the same count. A window that
   * would last longer than `windowMs` ends after that; a clock was set back, or the window was longer before.
   */
  hit(key: string, windowMs: number): Promise<Hit>
  /** How the key stands. Counts nothing; without a window all is 0. */
  peek(key: string): Promise<Hit>
  /** Takes so many hits of the window back, all at most: 1 if not given. Answers how many, atomically; without a window 0. */
  giveBack(key: string, hits?: number): Promise<number>
}

/** How many records of an account were removed, by what they are. */
export interface ForgottenAccount {
  mails: number
  resetTokens: number
  verificationTokens: number
  invitationTokens: number
  notMeTokens: number
  pendingLogins: number
  clientLogouts: number
  events: number
  /** Resets that are being finished, mails that a worker holds, client logouts that are still to be told: they are still there. */
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

/** Everything that the flows store, in one store. */
export interface AccountFlowsStore {
  resetTokens: ResetTokenStore
  verificationTokens: VerificationTokenStore
  invitationTokens: ResetTokenStore
  notMeTokens: NotMeTokenStore
  pendingLogins: PendingLoginStore
  cutoffs: SessionCutoffStore
  clientLogouts: ClientLogoutStore
  outbox: MailOutbox
  audit: AuditLog
  settings: SettingsStore
  limits: RateLimits
  keyRings: KeyRings
  providerRecords: ProviderRecords
  /** Creates collections and indexes; idempotent, and safe when several processes start at once. */
  start(): Promise<void>
  /** Removes what is over, where the database does not. */
  purge(): Promise<void>
  /** Time of the database. */
  now(): Promise<Date>
  /**
   * Removes all records about one account, even if there is no user with this id: mails, links, waiting logins,
   * client logouts and events.
   * Three things stay. Cut-offs, so that nothing ended comes back. Everything that is under way `at` that time. Events of type
   * `admin_action`, with `accountHash` as `details.account_hash` in place of the id. Repeated, it removes what came since.
   */
  forget(accountId: string, at: Date, accountHash: string): Promise<ForgottenAccount>
  /** Looks whether everything is as `start` left it. */
  inspect(): Promise<StoreInspection>
}

/** What a store says of itself. */
export interface StoreInspection {
  /** Indexes that are missing or have other options, as `collection.index`. `undefined`: the store cannot tell. */
  wrongIndexes: string[] | undefined
  /** Whether everything is lost when the process ends. */
  isVolatile: boolean
}
