import { passwordDigest } from '../crypto/password.ts'
import { type LinkKind, linkKinds, MAIL_KINDS, type TokenPart } from '../ports/mail-kinds.ts'
import { equalsInAsciiCase, withoutBlanks } from '../ports/users.ts'
import type { User, UserStore } from '../ports/index.ts'
import type { AccountFlowsStore, ClaimedReset } from '../records/index.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import type { FlowParts } from './parts.ts'

/** `ambiguous`: several verified addresses match and none of them byte for byte. */
export type UserMatch = User | 'ambiguous' | 'unknown'

/**
 * Finds the user of an identifier (4.2.3). A verified address wins over the username of another user: nobody can take over an
 * address by using it as a name. The look-ups are the same whether or not the user exists.
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

/** Finds the user of a username: by its exact bytes, without the blanks around it, and last the one that differs in ASCII case alone. */
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

// Somebody who takes another's address as a username would learn by a mail that nobody has verified it.
function mayBeMeant(typed: string, named: UserMatch): boolean {
  if (typeof named === 'string' || !typed.includes('@')) return true
  return equalsInAsciiCase(typed, named.email ?? '')
}

/** Why no mail at all can be sent to the account. `undefined`: one can. */
export function refusesMail({ disabled, email }: Pick<User, 'disabled' | 'email'>) {
  if (disabled) return 'disabled'
  if (email === undefined) return 'no_address'
  return isMailAddress(email) ? undefined : 'bad_address'
}

/** Who has a password is not invited to choose the first one. */
export function refusesInvitation({ passwordHash }: User) {
  return passwordHash === undefined ? undefined : 'has_password'
}

/** The account as it was when something was issued for it, or when its password was checked. */
export interface IssuedFor {
  email?: string | undefined
  passwordDigest: string
}

/** Void once the address, the password or the enabled state changed since. */
export function isStillFor(issued: IssuedFor, user: User): boolean {
  return !user.disabled && user.email === issued.email && isIssuedUnder(issued, user)
}

/** Whether the password is the same one still. */
export function isIssuedUnder(issued: IssuedFor, user: User): boolean {
  return passwordDigest(user.passwordHash) === issued.passwordDigest
}

/** Whether the address that a link went to is verified, by whatever means: it has nothing left to do. */
export function isVerified({ email }: IssuedFor, account: User | undefined): boolean {
  return (
    account !== undefined && account.email === email && account.emailVerified && !account.disabled
  )
}

/** Verifies the address that a reset link went to: its reader has the mailbox. `isTakenOver`: somebody else began to finish the reset. */
export async function verifyByReset(
  { users, audit, clock }: FlowParts,
  reset: ClaimedReset,
  isTakenOver: boolean,
): Promise<void> {
  const { id, userId: accountId, email, carried, claimedBy } = reset
  const isDone = await users.markEmailVerified(accountId, email)
  // A process that died may have verified it, and not recorded that.
  const wasDone = isTakenOver && isVerified(reset, await users.findById(accountId))
  if (!isDone && !wasDone) return
  const event = { id: `verified:${id}`, type: 'email_verification_completed' } as const
  await audit({ ...event, at: clock.now(), accountId, clientId: carried.clientId, ...claimedBy })
}

/**
 * Voids all that was mailed to an account, and the logins that wait for it; of some kinds of mails, or of all. A reset that was decided
 * is finished all the same.
 */
export type VoidLinks = (accountId: string, kinds?: readonly LinkKind[]) => Promise<void>

/** Links have expired by it, however far behind the clock of a process is. */
const VOIDED_AT = new Date(0)

export function createVoidLinks(
  store: Pick<AccountFlowsStore, 'pendingLogins' | 'outbox' | TokenPart>,
) {
  const voidLinks: VoidLinks = async (userId, kinds = linkKinds) => {
    if (kinds.includes('email_verification'))
      await store.pendingLogins.change({ accountId: userId }, { isVoid: true })
    for (const kind of kinds)
      await store[MAIL_KINDS[kind].link.tokens].revoke({ userId }, VOIDED_AT)
  }

  /** Voids what is still to be mailed to the account too, also what is on its way to the mail server. */
  const voidEverything: VoidLinks = async (userId, kinds = linkKinds) => {
    for (const kind of kinds) {
      const requests = await store.outbox.requestsOf(userId, kind)
      const ids = requests.map(({ id }) => id)
      await store.outbox.supersede(ids, VOIDED_AT)
    }
    await voidLinks(userId, kinds)
  }

  return { voidLinks, voidEverything }
}

/** Whether it was voided with all others of its account. */
export function isVoided({ expiresAt }: { expiresAt: Date }): boolean {
  return expiresAt.getTime() === VOIDED_AT.getTime()
}

/** The users as the flows see them: a user who is met disabled has no link any more, also once enabled again. */
export function usersVoidingLinks(users: UserStore, voidLinks: VoidLinks): UserStore {
  async function met<Found extends User | undefined>(user: Found): Promise<Found> {
    if (user?.disabled) await voidLinks(user.id)
    return user
  }

  return {
    findById: async (id) => met(await users.findById(id)),
    findByUsername: async (username) => met(await users.findByUsername(username)),
    findByUsernameInAnyCase: async (username) =>
      Promise.all(((await users.findByUsernameInAnyCase?.(username)) ?? []).map(met)),
    findByVerifiedEmail: async (email) =>
      Promise.all((await users.findByVerifiedEmail(email)).map(met)),
    replacePasswordHash: (id, expected, next) => users.replacePasswordHash(id, expected, next),
    ...(users.setFirstPassword && {
      setFirstPassword: async (...of) => (await users.setFirstPassword?.(...of)) ?? false,
    }),
    markEmailVerified: (id, email) => users.markEmailVerified(id, email),
    ...(users.markEmailUnverified && {
      markEmailUnverified: async (...of) => (await users.markEmailUnverified?.(...of)) ?? false,
    }),
  }
}
