import type { TokenOwner } from '../ports.ts'

export function isOwnedBy(token: TokenOwner, account: TokenOwner): boolean {
  return (
    token.userId === account.userId &&
    token.email === account.email &&
    token.passwordDigest === account.passwordDigest
  )
}
