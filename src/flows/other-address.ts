/**
 * "Wrong address?" (3.9): a login waits for another address than that of its account. While it waits, nothing that was mailed elsewhere
 * works. The account gets the other address in the step that verifies it.
 */
import type { User, UserStore } from '../contract/index.ts'
import type { Clock } from '../clock.ts'
import type { AccountFlowsStore, PendingLogin, Token } from '../store/index.ts'
import { isAwaited } from '../store/logins.ts'
import { isUnchanged } from './account.ts'

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

/** The only address whose mails and links work: of the newest login that waits for another one, or else that of the account. */
export async function awaitedAddress(parts: Parts, user: User): Promise<string | undefined> {
  if (!mayReplaceEmail(parts, user)) return user.email
  const login = await parts.store.pendingLogins.find({ accountId: user.id, hasOtherEmail: true })
  const isValid = login && isUnchanged(login, user) && isAwaited(login, parts.clock)
  return isValid ? login.otherEmail : user.email
}

/** The address of the account, and the other one. */
interface WithOther {
  email: string
  otherEmail?: string | undefined
}

export type LinkToken = Token & Partial<WithOther>

/** Where the mails of a link or a login go. */
export const mailedTo = <Of extends Partial<Pick<PendingLogin, 'email' | 'otherEmail'>>>({
  email,
  otherEmail,
}: Of): string | Of['email'] => otherEmail ?? email

/** The addresses of a link or a mail that holds none. `undefined`: it holds its address, or its login is gone. */
export async function otherAddressOf(
  { store }: Pick<Parts, 'store'>,
  { email, pendingLoginId: id }: Pick<Token, 'email' | 'pendingLoginId'>,
): Promise<WithOther | undefined> {
  if (email !== '' || id === undefined) return undefined
  const login = await store.pendingLogins.find({ id })
  return login && { email: login.email ?? '', otherEmail: login.otherEmail }
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
