import { createHash } from 'node:crypto'
import bcrypt from 'bcrypt'
import { MAX_PASSWORD_BYTES } from '../settings/kinds.ts'

interface PasswordLimits {
  minLength: number
  maxLength: number
}

export type PasswordRefusal =
  'password_mismatch' | 'password_too_short' | 'password_too_long' | 'password_invalid'

/**
 * Judges a new password (8). Lengths count code points; nothing is trimmed or folded.
 *
 * @returns `undefined` when it is acceptable.
 */
export function refusePassword(
  password: string,
  confirmation: string,
  limits: PasswordLimits,
): PasswordRefusal | undefined {
  if (password !== confirmation) return 'password_mismatch'
  if (!isPlain(password)) return 'password_invalid'
  if (!isShortEnough(password)) return 'password_too_long'
  // oxlint-disable-next-line typescript/no-misused-spread -- code points are what is counted
  const length = [...password].length
  if (length < limits.minLength) return 'password_too_short'
  if (length > limits.maxLength) return 'password_too_long'
  return undefined
}

/** Whether bcrypt tells it from every other password; no other one is ever set. */
export function isReadWhole(password: string): boolean {
  return isPlain(password) && isShortEnough(password)
}

function isPlain(password: string): boolean {
  return password.isWellFormed() && !password.includes('\0')
}

function isShortEnough(password: string): boolean {
  return Buffer.byteLength(password) <= MAX_PASSWORD_BYTES
}

export function hashPassword(password: string, cost: number): Promise<string> {
  return bcrypt.hash(password, cost)
}

/** Ties a token to the password it was issued under, without a copy of the hash. A bcrypt hash is salted, so plain SHA-256 will do. */
export function passwordDigest(passwordHash: string | undefined): string {
  return createHash('sha256')
    .update(passwordHash ?? 'none')
    .digest('hex')
}
