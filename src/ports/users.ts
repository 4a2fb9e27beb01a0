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
  /**
   * Finds every user whose username equals this one; only ASCII letters match in either case. A host without it has nobody found
   * by a username in another case.
   */
  findByUsernameInAnyCase?(username: string): Promise<User[]>
  /** Finds every user whose verified address equals this one; only ASCII letters match in either case. */
  findByVerifiedEmail(email: string): Promise<User[]>
  /**
   * Likewise, whether or not the address is verified. Admins alone are told: no flow asks. A host without it: admins find
   * accounts by verified addresses only.
   */
  findByEmail?(email: string): Promise<User[]>
  /**
   * Compare and set, atomically: replaces the password hash only while it still is `expected`. `false`: it was
   * another one, or the user is gone; nothing changed.
   */
  replacePasswordHash(id: string, expected: string, next: string): Promise<boolean>
  /**
   * Sets the password of a user who has none, and makes the address verified, in one atomic step: only while there is no password,
   * the user is enabled and the address still is `email`, byte for byte. Of concurrent callers exactly one gets `true`; `false`:
   * nothing changed. A host without it: nobody can be invited.
   */
  setFirstPassword?(id: string, email: string, hash: string): Promise<boolean>
  /**
   * Unverified to verified, atomically, and only while the user is enabled and the address still is `email`, byte for
   * byte. Of concurrent callers exactly one gets `true`; `false`: nothing changed. This one step decides which of several
   * links, or of several clicks, verified the address (3.2).
   */
  markEmailVerified(id: string, email: string): Promise<boolean>
  /**
   * Verified to unverified, atomically, and only while the address still is `email`, byte for byte. `false`: nothing changed.
   * Admins alone do it. A host without it: `user unverify` is refused.
   */
  markEmailUnverified?(id: string, email: string): Promise<boolean>
}

/**
 * Whether two addresses are the same but for the case of ASCII letters. `toLowerCase` would take the Kelvin sign for
 * a `k`, and so one person's address for another's.
 */
export function equalsInAsciiCase(one: string, other: string): boolean {
  return foldAscii(one) === foldAscii(other)
}

/** ASCII letters in lower case, all else as it is. */
function foldAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}

const BLANKS_AROUND = /^\p{White_Space}+|(?<!\p{White_Space})\p{White_Space}+$/gu

/** Without the blanks around it. Of blanks alone, all: nobody is named by nothing. */
export function withoutBlanks(typed: string): string {
  return typed.replace(BLANKS_AROUND, '') || typed
}

/** For keys and hashes: whatever a phone keyboard made of one name or address is the same text. */
export function foldTyped(typed: string): string {
  return foldAscii(withoutBlanks(typed))
}
