import { passwordDigest } from '../crypto/password.ts'
import type { IssuedAccount, User } from '../ports/index.ts'

/** The account as it was when something was issued for it, or when its password was checked. */
export interface IssuedFor {
  email: string | undefined
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

/** The account as a link is issued for it now. */
export function issuedNow({ id, email = '', passwordHash }: User): IssuedAccount {
  return { userId: id, email, passwordDigest: passwordDigest(passwordHash) }
}
