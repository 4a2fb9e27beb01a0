import { passwordDigest } from '../crypto/password.ts'
import type { TokenOwner, User } from '../ports.ts'

/** The account as it was when something was issued for it, or when its password was checked. */
export interface IssuedFor {
  email: string | undefined
  passwordDigest: string
}

/** Void once the address, the password or the enabled state changed since (D6). */
export function isStillFor(issued: IssuedFor, user: User): boolean {
  return !user.disabled && user.email === issued.email && isIssuedUnder(issued, user)
}

/** Whether the password is the same one still. */
export function isIssuedUnder(issued: IssuedFor, user: User): boolean {
  return passwordDigest(user.passwordHash) === issued.passwordDigest
}

/** Whether the account has a token that works, issued for it as it is. */
export async function hasUsableToken(
  tokens: { hasUsable(account: TokenOwner, at: Date): Promise<boolean> },
  { id, email, passwordHash, disabled }: User,
  at: Date,
): Promise<boolean> {
  if (email === undefined || disabled) return false
  return tokens.hasUsable({ userId: id, email, passwordDigest: passwordDigest(passwordHash) }, at)
}
