import { createHash } from 'node:crypto'

/**
 * The number that the window of a login shows: 10 to 99, always the same of the same login, and stored nowhere. It is no secret
 * of its own: whoever sees the window may know it.
 */
export function numberOf(pendingLoginId: string): number {
  const digest = createHash('sha256').update(`number of the window ${pendingLoginId}`).digest()
  return 10 + (digest.readUInt32BE() % 90)
}

/** The number that somebody typed, whatever their digits, with blanks and invisible marks or without. `undefined`: it is none of two digits. */
export function readNumber(typed: string): number | undefined {
  const digits = typed
    .normalize('NFKC')
    .replace(/[\s\p{Cf}]+/gu, '')
    // Arabic and Persian digits: the last four bits of each are its value.
    .replace(/[\u0660-\u0669\u06F0-\u06F9]/g, (digit) => String(digit.charCodeAt(0) & 15))
  return /^[1-9]\d$/.test(digits) ? Number(digits) : undefined
}
