import { createHash } from 'node:crypto'
import bcrypt from 'bcrypt'
import type { PasswordRefusal, RefusedNewPassword } from '../ports/index.ts'
import { MAX_PASSWORD_BYTES } from '../settings/kinds.ts'

/** What is wrong with the form, besides what a password is told by itself. */
export interface RefusedPassword extends Omit<RefusedNewPassword, 'refusal'> {
  refusal: PasswordRefusal
  /** What is wrong besides, where that is another field's to mend. */
  also?: RefusedNewPassword['refusal'] | undefined
}

/**
 * Judges a new password (8). Lengths count code points; nothing is trimmed or folded.
 *
 * @returns `undefined` when it is acceptable.
 */
export function refusePassword(
  password: string,
  confirmation: string,
  { minLength, maxLength }: { minLength: number; maxLength: number },
): RefusedPassword | undefined {
  const characters = Array.from(password)
  const excess = excessOf(characters, maxLength)
  const fault = faultOf()
  if (password !== confirmation) return { refusal: 'password_mismatch', also: fault, excess }
  return fault && { refusal: fault, excess }

  function faultOf(): RefusedNewPassword['refusal'] | undefined {
    if (!isPlain(password)) return 'password_invalid'
    if (excess > 0) return 'password_too_long'
    return characters.length < minLength ? 'password_too_short' : undefined
  }
}

/** How many at the end do not fit. */
function excessOf(characters: readonly string[], maxLength: number): number {
  let fitting = Math.min(characters.length, maxLength)
  while (!isShortEnough(characters.slice(0, fitting).join(''))) fitting--
  return characters.length - fitting
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
