/** The parts of a user that the flows touch (2.3). */
export interface User {
  /** The `accountId` of this user at the provider. */
  id: string
  username: string
  /** `undefined`: the user has no address and never gets a mail. */
  email: string | undefined
  emailVerified: boolean
  /** A bcrypt hash. `undefined`: the user has no password and cannot reset one. */
  passwordHash: string | undefined
  disabled: boolean
  /** The language of mails, as a tag such as `de` or `pt-BR`. `undefined`: unknown. */
  locale?: string | undefined
}

/**
 * Your user store: bring your own, or use `memoryUsers` or `mongoUsers`. Throw an error with the code `ERR_STORE_UNAVAILABLE` when users
 * cannot be reached: pages then ask the user to try again (503).
 */
export interface UserStore {
  /** `flows.start()` calls it once: create indexes here. */
  start?(): Promise<void>
  /** `undefined` for any text that is not the id of a user: an admin may type any text. */
  findById(id: string): Promise<User | undefined>
  /** Finds the user whose username has exactly these bytes: no trimming, no case folding. */
  findByUsername(username: string): Promise<User | undefined>
  /**
   * Finds every user whose username equals this one; only ASCII letters match in both cases. Without it, a username in another case finds
   * no user.
   */
  findByUsernameInAnyCase?(username: string): Promise<User[]>
  /** Finds every user whose verified address equals this one; only ASCII letters match in both cases. */
  findByVerifiedEmail(email: string): Promise<User[]>
  /**
   * The same for any address, verified or not. Only admins use it, no flow does. Without it, admins find accounts only by verified
   * addresses.
   */
  findByEmail?(email: string): Promise<User[]>
  /**
   * Compare and set, atomically: replaces the password hash only while it still is `expected`. `false`: the hash differs, or the user is
   * gone; nothing changed.
   */
  replacePasswordHash(id: string, expected: string, next: string): Promise<boolean>
  /**
   * Sets the password of a user without one, and makes the address verified, in one atomic step. It does so only while there is no
   * password, the user is enabled and the address still is `email`, byte for byte. `true` for exactly one of concurrent callers; `false`:
   * nothing changed. Without this method, there are no invitations.
   */
  setFirstPassword?(id: string, email: string, hash: string): Promise<boolean>
  /**
   * Unverified to verified, atomically, and only while the user is enabled and the address still is `email`, byte for byte. `true` for
   * exactly one of concurrent callers; `false`: nothing changed. This one step decides which of several links or clicks verified the
   * address (3.2).
   */
  markEmailVerified(id: string, email: string): Promise<boolean>
  /**
   * Verified to unverified, atomically, and only while the address still is `email`, byte for byte. `false`: nothing changed. Only admins
   * use it. Without it, `user unverify` is refused.
   */
  markEmailUnverified?(id: string, email: string): Promise<boolean>
}

/**
 * Whether two addresses are equal except for the case of ASCII letters. `toLowerCase` would turn the Kelvin sign into a `k`, and so confuse
 * two users.
 */
export function equalsInAsciiCase(one: string, other: string): boolean {
  return foldAscii(one) === foldAscii(other)
}

/** Converts ASCII letters to lower case; all other characters stay unchanged. */
function foldAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

const BLANKS_AROUND = /^\p{White_Space}+|(?<!\p{White_Space})\p{White_Space}+$/gu

/** Removes the blanks around a text. A text of blanks only stays unchanged, because an empty name matches no user. */
export function withoutBlanks(typed: string): string {
  return typed.replace(BLANKS_AROUND, '') || typed
}

/** For keys and hashes: all spellings that a phone keyboard makes of one name or address become the same text. */
export function foldTyped(typed: string): string {
  return foldAscii(withoutBlanks(typed))
}

/**
 * Why a new password is refused. `password_common`: attackers try it first, or it was leaked. `password_personal`: it contains names of the
 * account or the service. `password_current`: it is in force already. `password_host`: your `validatePassword` refused it.
 */
export type PasswordRefusal =
  | 'password_mismatch'
  | 'password_too_short'
  | 'password_too_long'
  | 'password_invalid'
  | 'password_common'
  | 'password_personal'
  | 'password_current'
  | 'password_host'

/** A refused new password. */
export interface RefusedNewPassword {
  /** Any refusal that concerns one password alone. */
  refusal: Exclude<PasswordRefusal, 'password_mismatch'>
  /** How many characters are too many. */
  excess?: number
  /** The reason from your `validatePassword`, with `password_host`. */
  reason?: ReasonWords
}

/** Plain text of at most 300 characters; or one text for each language tag, such as `{ en: '…', de: '…' }`. */
export type ReasonWords = string | Readonly<Record<string, string>>

/**
 * Your own check of a new password. `undefined` accepts it; `{ reason }` refuses it, and the form shows the reason. It has 2 seconds to
 * answer. If it throws, is late or answers anything else, no password is set: the page says that it does not work for now.
 */
export type ValidatePassword = (
  password: string,
  user: User,
) => { reason: ReasonWords } | undefined | Promise<{ reason: ReasonWords } | undefined>
