import { createHmac, timingSafeEqual } from 'node:crypto'
import type { DerivedKey, KeyRing } from './keys.ts'

const CODES = 1_000_000
/** Larger numbers would make low codes likelier. */
const UNBIASED_BELOW = Math.floor(2 ** 32 / CODES) * CODES

/** The code in the mails of a login: six digits, always the same for a wait and its address, and stored nowhere. */
export function createLoginCodes(keys: KeyRing) {
  return {
    /** @param addressId - of another address than that of the account. */
    codeOf: (waitId: string, addressId?: string) =>
      codeUnder(keys.login_code[0], waitId, addressId),

    /** Whether a key of the ring makes this code, which comes from `readCode`. Compares in constant time. */
    isCodeOf(code: string, waitId: string, addressId?: string) {
      const given = Buffer.from(code)
      const codes = keys.login_code.map((key) => Buffer.from(codeUnder(key, waitId, addressId)))
      return codes.filter((each) => timingSafeEqual(given, each)).length > 0
    },
  }
}

function codeUnder({ bytes }: DerivedKey, waitId: string, addressId?: string): string {
  const of = addressId === undefined ? waitId : `${waitId} ${addressId}`
  for (let round = 0; ; round += 1) {
    const word = createHmac('sha256', bytes).update(`${round} ${of}`).digest().readUInt32BE()
    if (word < UNBIASED_BELOW) return String(word % CODES).padStart(6, '0')
  }
}

/** The typed code, in digits of any script. Blanks, hyphens and invisible marks are ignored. `undefined`: not six digits. */
export function readCode(typed: string): string | undefined {
  const code = typed
    .slice(0, 100)
    .replace(/[\s\p{Cf}\p{Pd}]+/gu, '')
    .replace(/\p{Nd}/gu, (digit) => String(valueOf(digit)))
  return /^\d{6}$/.test(code) ? code : undefined
}

/** Unicode has the decimal digits in whole sets of ten, from 0 on. */
function valueOf(digit: string): number {
  const point = digit.codePointAt(0) ?? 0
  let zero = point
  while (/\p{Nd}/u.test(String.fromCodePoint(zero - 1))) zero -= 1
  return (point - zero) % 10
}
