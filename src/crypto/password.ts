import { createHash } from 'node:crypto'
import bcrypt from 'bcrypt'
import type { PasswordRefusal, RefusedNewPassword } from '../contract/index.ts'
import { MAX_PASSWORD_BYTES } from '../settings/kinds.ts'
import type { Settings } from '../settings/table.ts'

interface RefusedPassword extends Omit<RefusedNewPassword, 'refusal'> {
  refusal: PasswordRefusal
  /** What is also wrong, in the other field. */
  also?: RefusedNewPassword['refusal'] | undefined
}

type Limits = Pick<Settings, 'minPasswordLength' | 'maxPasswordLength'>

/** What is wrong with the two fields of a form. `undefined`: the password is good. */
export function refusePassword(
  password: string,
  confirmation: string,
  limits: Limits,
): RefusedPassword | undefined {
  const fault = refuseLength(password, limits)
  if (password === confirmation) return fault
  return { refusal: 'password_mismatch', also: fault?.refusal, excess: fault?.excess ?? 0 }
}

/** What is wrong with a new password by itself (8). Lengths count code points; nothing is trimmed or folded. */
export function refuseLength(password: string, limits: Limits): RefusedNewPassword | undefined {
  const characters = Array.from(password)
  const excess = excessOf(characters, limits.maxPasswordLength)
  if (!isPlain(password)) return { refusal: 'password_invalid', ...(excess > 0 && { excess }) }
  if (excess > 0) return { refusal: 'password_too_long', excess }
  const isTooShort = characters.length < limits.minPasswordLength
  return isTooShort ? { refusal: 'password_too_short' } : undefined
}

/** How many characters at the end do not fit. */
function excessOf(characters: readonly string[], maxLength: number): number {
  let fitting = Math.min(characters.length, maxLength)
  while (!isShortEnough(characters.slice(0, fitting).join(''))) fitting--
  return characters.length - fitting
}

/** Whether bcrypt reads the whole password. No other password is ever set. */
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

/** Ties a token to the current password, without a copy of the hash. The hash is salted, so plain SHA-256 will do. */
export function passwordDigest(passwordHash: string | undefined): string {
  return createHash('sha256')
    .update(passwordHash ?? 'none')
    .digest('hex')
}
