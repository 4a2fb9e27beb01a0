/** Finds accounts. Says whether they may get a mail, and whether they have changed since their link was issued. */
import { isForFirst, passwordDigest } from '../crypto/password.ts'
import { equalsInAsciiCase, hashOf, withoutBlanks } from '../contract/users.ts'
import type { User, UserStore } from '../contract/index.ts'
import type { PendingLogin } from '../store/index.ts'
import { isMailAddress } from '../settings/addresses.ts'
import type { Settings } from '../settings/table.ts'

/** `ambiguous`: several accounts match, and none of them byte for byte. */
type UserMatch = User | 'ambiguous' | 'unknown'

/**
 * Finds the user of an identifier (4.2.3), by the same look-ups for all. A verified address wins over a username, so that a stranger cannot
 * take over an address by choosing it as a username.
 */
export async function findByIdentifier(users: UserStore, identifier: string): Promise<UserMatch> {
  const typed = withoutBlanks(identifier)
  const [matches, named] = await Promise.all([
    users.findByVerifiedEmail(typed),
    findByName(users, identifier),
  ])
  if (matches.length === 0) {
    if (typeof named === 'string' || !typed.includes('@')) return named
    // A user whose username is another person's address must not learn that no account has verified it.
    return equalsInAsciiCase(typed, named.email ?? '') ? named : 'unknown'
  }
  const exact = matches.filter(({ email }) => email === typed)
  return onlyOne(exact.length > 0 ? exact : matches)
}

/** By its exact bytes, then without blanks around it, then in any ASCII case. */
export async function findByName(users: UserStore, typed: string): Promise<UserMatch> {
  const name = withoutBlanks(typed)
  const asTyped = typed.includes('@') ? name : typed
  const [exact, trimmed, inAnyCase = []] = await Promise.all([
    users.findByUsername(asTyped),
    asTyped === name ? undefined : users.findByUsername(name),
    users.findByUsernameInAnyCase?.(name),
  ])
  return exact ?? trimmed ?? onlyOne(inAnyCase)
}

function onlyOne(users: User[]): UserMatch {
  const [match = 'unknown', another] = users
  return another ? 'ambiguous' : match
}

export function whyNoMail({ disabled, email }: Pick<User, 'disabled' | 'email'>) {
  if (disabled) return 'disabled'
  if (email === undefined) return 'no_address'
  return isMailAddress(email) ? undefined : 'bad_address'
}

export function whyNoInvitation(user: User) {
  return hashOf(user) === undefined ? undefined : 'has_password'
}

/** What a request for a reset gets: a link, a mail without one that names where the user signs in, or no mail. */
export type ResetAnswer = 'link' | 'elsewhere' | 'no_password' | 'not_verified'

export function answerToReset(
  user: User,
  { users, settings }: { users: UserStore; settings(): Settings },
): ResetAnswer {
  const { emailVerified, mayChoosePassword } = user
  if (hashOf(user) !== undefined)
    return settings().resetRequiresVerifiedEmail && !emailVerified ? 'not_verified' : 'link'
  const mayChoose = users.setFirstPassword !== undefined && mayChoosePassword === true
  if (mayChoose) return emailVerified ? 'link' : 'not_verified'
  return emailVerified && elsewhereOf(user) !== undefined ? 'elsewhere' : 'no_password'
}

/** Where a user without a password signs in. A host may have any value there. */
export function elsewhereOf({ signsInElsewhere }: User): string | undefined {
  const place: unknown = signsInElsewhere
  const isName = typeof place === 'string' && /[\p{L}\p{N}]/u.test(place)
  return isName ? place.trim() : undefined
}

/** The account as it was when a link was issued, or when its password was checked. */
type IssuedFor = Pick<PendingLogin, 'email' | 'passwordDigest'>

export function isUnchanged(issued: IssuedFor, user: User): boolean {
  return !user.disabled && user.email === issued.email && hasSamePassword(issued, user)
}

export function hasSamePassword(issued: IssuedFor, user: User): boolean {
  const { passwordHash, mayChoosePassword, emailVerified } = user
  if (!isForFirst(issued)) return passwordDigest(passwordHash) === issued.passwordDigest
  return hashOf(user) === undefined && mayChoosePassword === true && emailVerified
}

/** Whether the address that a link went to is verified, by this link or in another way. */
export function isVerified(
  { email, otherEmail: mailedTo = email }: { email: string; otherEmail?: string | undefined },
  account: User | undefined,
): boolean {
  return account?.email === mailedTo && account.emailVerified && !account.disabled
}

/** Whether another account has the address, verified. Only an admin and the owner of its mailbox may learn that. */
export const isTaken = async (users: UserStore, accountId: string, email: string) =>
  (await users.findByVerifiedEmail(email)).some(({ id }) => id !== accountId)
