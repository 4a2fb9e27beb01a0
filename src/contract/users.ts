/** The parts of a user that the flows touch (2.3). */
export interface User {
  /** The `accountId` of this user at the provider. */
  id: string
  /** `''`: the user has none. A reset then finds the user by a verified address. */
  username: string
  /** `undefined`: the user has no address and never gets a mail. */
  email: string | undefined
  emailVerified: boolean
  /** A bcrypt hash. `undefined`, `null` or `''`: the user has no password, and cannot reset one unless `mayChoosePassword` is set. */
  passwordHash: string | undefined
  disabled: boolean
  /** The language of mails, as a tag such as `de` or `pt-BR`. `undefined`: unknown. */
  locale?: string | undefined
  /**
   * Whether a user without a password may choose one: a request for a reset then mails a link, to a verified address only. Off by default:
   * beside single sign-on, a local password goes past its second factor.
   */
  mayChoosePassword?: boolean | undefined
  /** Where a user without a password signs in, such as `'Google'`. If none may be chosen, a request for a reset mails this, and no link. */
  signsInElsewhere?: string | undefined
  /**
   * Whether the user may correct a mistyped address on the page that waits for its verification. Off by default. Set it only for accounts
   * that people made on your own sign-up page. Never set it for imported ones: anyone who knows the password then chooses the address.
   */
  mayReplaceEmail?: boolean | undefined
}

/**
 * Your user store: bring your own, or use `memoryUsers` or `mongoUsers`. If users cannot be reached, throw an error with the code
 * `ERR_STORE_UNAVAILABLE`: pages then ask the user to try again (503).
 */
export interface UserStore {
  /** `flows.start()` calls it once: create indexes here. */
  start?(): Promise<void>
  /** `undefined` for any text that is not the id of a user: an admin may type any text. */
  findById(id: string): Promise<User | undefined>
  /** Finds the user whose username has exactly these bytes: no trimming, no case folding. */
  findByUsername(username: string): Promise<User | undefined>
  /** The same, but ASCII letters match in both cases; all users that match. Without it, a username in another case finds no user. */
  findByUsernameInAnyCase?(username: string): Promise<User[]>
  /** Finds every user whose verified address equals this one; only ASCII letters match in both cases. */
  findByVerifiedEmail(email: string): Promise<User[]>
  /** The same for any address, verified or not, for admins alone. Without it, they find accounts only by verified addresses. */
  findByEmail?(email: string): Promise<User[]>
  /** Replaces the password hash, atomically, and only while it still is `expected`. `false`: it differs, or the user is gone; nothing changed. */
  replacePasswordHash(id: string, expected: string, next: string): Promise<boolean>
  /**
   * Sets the first password and makes the address verified, in one atomic step. It does so only while there is no password, the user is
   * enabled and the address still is `email`, byte for byte. `true` for exactly one of concurrent callers; `false`: nothing changed. Without
   * it, there are no invitations, and `mayChoosePassword` has no effect.
   */
  setFirstPassword?(id: string, email: string, hash: string): Promise<boolean>
  /**
   * Unverified to verified, atomically, and only while the user is enabled and the address still is `email`, byte for byte. `true` for
   * exactly one of concurrent callers: its link verified the address (3.2). `false`: nothing changed.
   */
  markEmailVerified(id: string, email: string): Promise<boolean>
  /**
   * Verified to unverified, atomically, and only while the address still is `email`, byte for byte. `false`: nothing changed. Without it,
   * `user unverify` is refused, and "This wasn't me" leaves an address verified.
   */
  markEmailUnverified?(id: string, email: string): Promise<boolean>
  /**
   * Replaces an unverified address by `next`, whose mailbox is proven, and makes it verified, in one atomic step. It does so only while the
   * user is enabled and the address is unverified and still `expected`, byte for byte. `true` for exactly one of concurrent callers; `false`:
   * nothing changed, for example because another user has `next`. Without it, `mayReplaceEmail` has no effect. Do
   * not call `flows.emailChanged` for it.
   */
  replaceEmail?(id: string, expected: string, next: string): Promise<boolean>
}

/** `undefined`: the user has no password. A host may remove the hash, or have `null` or an empty text in its place. */
export function hashOf({ passwordHash }: Pick<User, 'passwordHash'>): string | undefined {
  const hash: unknown = passwordHash
  return typeof hash === 'string' && hash !== '' ? hash : undefined
}

/** Whether two addresses are equal except for the case of ASCII letters. `toLowerCase` would turn the Kelvin sign into a `k`. */
export function equalsInAsciiCase(one: string, other: string): boolean {
  return foldAscii(one) === foldAscii(other)
}

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

/** Why a new password is refused. */
export type PasswordRefusal =
  | 'password_mismatch'
  | 'password_too_short'
  | 'password_too_long'
  | 'password_invalid'
  | 'password_common' // Attackers try it first, or it was leaked.
  | 'password_personal' // It contains names of the account or the service.
  | 'password_current' // It is in force already.
  | 'password_host' // Your `validatePassword` refused it.

/** A refused new password. */
export interface RefusedNewPassword {
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
