/**
 * "Wrong address?" (3.9): an account waits for another address than its own. Until then, only what was mailed to that address works. The
 * account gets the address in the step that verifies it.
 */
import type { User, UserStore } from '../contract/index.ts'
import type { Clock } from '../clock.ts'
import type { AccountFlowsStore, PendingLogin, Token } from '../store/index.ts'
import { isInTime, KEEP_LOGIN_MS, type OtherEmail } from '../store/logins.ts'
import { isUnchanged } from './account.ts'
import type { CommonParts } from './parts.ts'

interface Parts {
  store: Pick<AccountFlowsStore, 'pendingLogins'>
  users: UserStore
  clock: Clock
}

/** Whether the user may replace the address of the account. */
export const mayReplaceEmail = ({ users }: Pick<Parts, 'users'>, user: User): boolean =>
  users.replaceEmail !== undefined &&
  user.mayReplaceEmail === true &&
  user.email !== undefined &&
  !user.emailVerified

/** A login with another address. */
export type WithOther = PendingLogin & OtherEmail

const hasOther = (login: PendingLogin | undefined): login is WithOther =>
  login?.otherEmail !== undefined && login.addressId !== undefined && login.typedAt !== undefined

/** The login whose other address the account waits for: the one that was typed last. `undefined`: its own address counts. */
export async function awaitedOf(parts: Parts, user: User): Promise<WithOther | undefined> {
  if (!mayReplaceEmail(parts, user)) return undefined
  const logins = await parts.store.pendingLogins.withOtherEmail(user.id)
  const isAwaited = (login: PendingLogin): login is WithOther =>
    hasOther(login) && isUnchanged(login, user) && isInTime(login, parts.clock)
  return logins.find(isAwaited)
}

/** A link, and where it was mailed if that was another address than `email`, which the account had then. */
export type LinkToken = Token & { otherEmail?: string | undefined }

/** Finds the addresses of a link that holds none. If no login holds them, it stays without. */
export async function withAddresses(
  { store }: Pick<Parts, 'store'>,
  token: Token,
): Promise<LinkToken> {
  const { userId: accountId, addressId } = token
  const login =
    addressId === undefined ? undefined : await store.pendingLogins.find({ accountId, addressId })
  return hasOther(login)
    ? { ...token, email: login.email ?? '', otherEmail: login.otherEmail }
    : token
}

/** The wait of an expired link begins anew. */
export async function waitAgain(
  { store, settings, clock }: Parts & Pick<CommonParts, 'settings'>,
  { userId: accountId, addressId }: Token,
): Promise<void> {
  if (addressId === undefined) return
  const login = await store.pendingLogins.find({ accountId, addressId })
  const keptMs = settings().emailVerificationExpiration + KEEP_LOGIN_MS
  const purgeAt = new Date(clock.now().getTime() + keptMs)
  if (login) await store.pendingLogins.change({ id: login.id }, { purgeAt })
}

/** Where a mail went. `''`: no login holds its address any more. */
export async function mailboxOf(
  { store }: Pick<Parts, 'store'>,
  { userId: accountId, email, addressId }: Pick<Token, 'userId' | 'email' | 'addressId'>,
): Promise<string> {
  if (addressId === undefined) return email
  return (await store.pendingLogins.find({ accountId, addressId }))?.otherEmail ?? ''
}

/**
 * Gives the account the other address, verified. `taken`: another account has it, which only the owner of its mailbox is told. `false`: the
 * account has changed.
 */
export async function replaceEmail(
  parts: Pick<Parts, 'users'>,
  userId: string,
  email: string,
  otherEmail: string,
): Promise<boolean | 'taken'> {
  const { users } = parts
  const mayReplace = async () => {
    const user = await users.findById(userId)
    return user?.email === email && !user.disabled && mayReplaceEmail(parts, user)
  }
  if (!(await mayReplace())) return false
  const others = await users.findByVerifiedEmail(otherEmail)
  if (others.some(({ id }) => id !== userId)) return 'taken'
  if (await users.replaceEmail?.(userId, email, otherEmail)) return true
  // If the account could still get it, the store knows another account with it.
  return (await mayReplace()) ? 'taken' : false
}
