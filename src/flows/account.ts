/** Finds accounts, says whether they may get a mail or have changed since their link was issued, and voids links. */
import { passwordDigest } from '../crypto/password.ts'
import { linkKinds, type TokenPart, tokensOf } from '../contract/mail-kinds.ts'
import { equalsInAsciiCase, withoutBlanks } from '../contract/users.ts'
import type { User, UserStore } from '../contract/index.ts'
import type { AccountFlowsStore, MailOutbox, PendingLogin } from '../store/index.ts'
import { isMailAddress } from '../settings/addresses.ts'

/** `ambiguous`: several accounts match, and none of them byte for byte. */
type UserMatch = User | 'ambiguous' | 'unknown'

/**
 * Finds the user of an identifier (4.2.3), by the same look-ups for all. A verified address wins over a username, so that a stranger cannot
 * take over an address by choosing it as a username.
 */
export async function findUser(users: UserStore, identifier: string): Promise<UserMatch> {
  const typed = withoutBlanks(identifier)
  const [matches, named] = await Promise.all([
    users.findByVerifiedEmail(typed),
    findByName(users, identifier),
  ])
  if (matches.length === 0) return mayBeMeant(typed, named) ? named : 'unknown'
  const exact = matches.filter(({ email }) => email === typed)
  return onlyOne(exact.length > 0 ? exact : matches)
}

/** By its exact bytes, then without blanks around it, then in any ASCII case. */
export async function findByName(users: UserStore, typed: string): Promise<UserMatch> {
  const name = withoutBlanks(typed)
  const first = typed.includes('@') ? name : typed
  const [exact, trimmed, inAnyCase = []] = await Promise.all([
    users.findByUsername(first),
    first === name ? undefined : users.findByUsername(name),
    users.findByUsernameInAnyCase?.(name),
  ])
  return exact ?? trimmed ?? onlyOne(inAnyCase)
}

function onlyOne(users: User[]): UserMatch {
  const [match = 'unknown', another] = users
  return another ? 'ambiguous' : match
}

// A user whose username is another person's address must not learn that no account has verified it.
function mayBeMeant(typed: string, named: UserMatch): boolean {
  if (typeof named === 'string' || !typed.includes('@')) return true
  return equalsInAsciiCase(typed, named.email ?? '')
}

export function whyNoMail({ disabled, email }: Pick<User, 'disabled' | 'email'>) {
  if (disabled) return 'disabled'
  if (email === undefined) return 'no_address'
  return isMailAddress(email) ? undefined : 'bad_address'
}

export function whyNoInvitation({ passwordHash }: User) {
  return passwordHash === undefined ? undefined : 'has_password'
}

/** The account as it was when a link was issued, or when its password was checked. */
type IssuedFor = Pick<PendingLogin, 'email' | 'passwordDigest'>

export function isUnchanged(issued: IssuedFor, user: User): boolean {
  return !user.disabled && user.email === issued.email && hasSamePassword(issued, user)
}

export function hasSamePassword(issued: IssuedFor, user: User): boolean {
  return passwordDigest(user.passwordHash) === issued.passwordDigest
}

/** Whether the address that a link went to is verified, by this link or in another way. */
export function isVerified({ email }: IssuedFor, account: User | undefined): boolean {
  return (
    account !== undefined && account.email === email && account.emailVerified && !account.disabled
  )
}

/** So long ago that a void link has expired by every clock. */
const VOIDED_AT = new Date(0)

export interface LinkStore extends Pick<AccountFlowsStore, 'pendingLogins' | TokenPart> {
  outbox: Pick<MailOutbox, 'requestsOf' | 'supersede'>
}

/** Voids the mailed links of an account, and ends its waiting logins. A password that was accepted is still set. */
async function voidLinks(store: LinkStore, userId: string, kinds = linkKinds) {
  await store.pendingLogins.change({ accountId: userId }, { isVoid: true })
  for (const kind of kinds) await tokensOf(store, kind).revoke({ userId }, VOIDED_AT)
}

/** Also voids mails that are not sent yet, or are on their way to the mail server. */
export async function voidEverything(store: LinkStore, userId: string, kinds = linkKinds) {
  for (const kind of kinds) {
    const requests = await store.outbox.requestsOf(userId, kind)
    const ids = requests.map(({ id }) => id)
    await store.outbox.supersede(ids, VOIDED_AT)
  }
  await voidLinks(store, userId, kinds)
}

export function wasVoided({ expiresAt }: { expiresAt: Date }): boolean {
  return expiresAt.getTime() === VOIDED_AT.getTime()
}

/** Voids the links of each disabled user that it finds, so that they stay void when the user is enabled again. */
export function usersVoidingLinks(users: UserStore, store: LinkStore): UserStore {
  async function voidIfDisabled<Found extends User | undefined>(user: Found): Promise<Found> {
    if (user?.disabled) await voidLinks(store, user.id)
    return user
  }

  const voidEach = (found: User[]) => Promise.all(found.map(voidIfDisabled))

  return {
    findById: async (id) => voidIfDisabled(await users.findById(id)),
    findByUsername: async (username) => voidIfDisabled(await users.findByUsername(username)),
    findByUsernameInAnyCase: async (username) =>
      voidEach((await users.findByUsernameInAnyCase?.(username)) ?? []),
    findByVerifiedEmail: async (email) => voidEach(await users.findByVerifiedEmail(email)),
    replacePasswordHash: (...of) => users.replacePasswordHash(...of),
    ...(users.setFirstPassword && {
      setFirstPassword: async (...of) => (await users.setFirstPassword?.(...of)) ?? false,
    }),
    markEmailVerified: (...of) => users.markEmailVerified(...of),
    ...(users.markEmailUnverified && {
      markEmailUnverified: async (...of) => (await users.markEmailUnverified?.(...of)) ?? false,
    }),
  }
}
