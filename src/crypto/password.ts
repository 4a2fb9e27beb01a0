import { createHash } from 'node:crypto'
import { hashOf } from '../contract/users.ts'
import { MAX_PASSWORD_BYTES } from '../settings/kinds.ts'

// bcrypt reads the whole of such a password only. No other password is ever set.
export function isPlain(password: string): boolean {
  return password.isWellFormed() && !password.includes('\0')
}

export function isShortEnough(password: string): boolean {
  return Buffer.byteLength(password) <= MAX_PASSWORD_BYTES
}

/** Ties a token to the current password, without a copy of the hash. The hash is salted, so plain SHA-256 will do. */
export function passwordDigest(passwordHash: string | undefined): string {
  return createHash('sha256')
    .update(hashOf({ passwordHash }) ?? 'none')
    .digest('hex')
}

/** A reset link of an account without a password has this in place of a digest. It is void unless the user may choose one. */
const MAY_CHOOSE = passwordDigest('may choose the first password')

/** What a reset link is bound to. */
export const resetDigest = (passwordHash: string | undefined): string =>
  hashOf({ passwordHash }) === undefined ? MAY_CHOOSE : passwordDigest(passwordHash)

/** Whether it is a reset link that sets the first password. */
export const isForFirst = (issued: { passwordDigest: string }): boolean =>
  issued.passwordDigest === MAY_CHOOSE
