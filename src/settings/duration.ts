const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 } as const

const GRAMMAR = /^(?:([1-9]\d{0,5})d)?(?:([1-9]\d{0,5})h)?(?:([1-9]\d{0,5})m)?(?:([1-9]\d{0,5})s)?$/

/**
 * Reads a duration such as `1h`, `90m`, `1h30m` or `7d`: whole numbers without leading zeros, largest unit first.
 *
 * @returns milliseconds; `undefined` when it is anything else.
 */
export function parseDuration(value: string): number | undefined {
  const match = GRAMMAR.exec(value)
  if (value === '' || !match) return undefined
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] = match
  return +days * UNITS.d + +hours * UNITS.h + +minutes * UNITS.m + +seconds * UNITS.s
}
