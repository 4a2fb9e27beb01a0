/** The kinds of settings: how each is read, and how it says what it takes. */
import { isIP } from 'node:net'
import { isInTheClear } from './loopback-host.ts'

const DAY = 86_400_000
/** bcrypt reads no further. */
export const MAX_PASSWORD_BYTES = 72
const MAX_LIMIT = 10_000

interface About {
  meaning: string
  strictest?: string
}

/** What most settings have not. */
const PLAIN = { bounds: undefined, values: undefined, secret: false }

export function duration<N extends string, D>(
  name: N,
  byDefault: D,
  max: number,
  { minDays = 0, ...about }: About & { minDays?: number },
) {
  const least = minDays === 0 ? '1s' : `${minDays}d`
  return {
    ...PLAIN,
    ...about,
    name,
    type: 'duration' as const,
    default: byDefault,
    bounds: `${least} to ${max / DAY}d`,
    expected: `a duration from ${least} to ${max / DAY}d, such as ${minDays === 0 ? '1h, 90m, 1h30m or 7d' : '90d'}`,
    parse(value: string) {
      const ms = parseDuration(value)
      return ms === undefined || ms < minDays * DAY || ms > max ? undefined : ms
    },
  }
}

export function pause<N extends string, D>(name: N, byDefault: D, max: number, about: About) {
  const { bounds, parse, ...row } = duration(name, byDefault, max, about)
  return {
    ...row,
    bounds: `0s, which is none; ${bounds}`,
    expected: `"0s" for none, or a duration from ${bounds}, such as 30s or 5m`,
    parse: (value: string) => (value === '0s' ? 0 : parse(value)),
  }
}

export function number<N extends string, D>(name: N, byDefault: D, most: number, about: About) {
  return {
    ...PLAIN,
    ...about,
    name,
    type: 'number' as const,
    default: byDefault,
    bounds: `1 to ${most}`,
    expected: `a decimal number from 1 to ${most}`,
    parse: (value: string) => parseWhole(value, most),
  }
}

/** Of a password. */
export function length<N extends string, D>(name: N, byDefault: D, about: About) {
  return number(name, byDefault, MAX_PASSWORD_BYTES, about)
}

export function limit<N extends string, D>(name: N, byDefault: D, about: About) {
  const { bounds, expected, parse, ...row } = number(name, byDefault, MAX_LIMIT, about)
  return {
    ...row,
    bounds: `0, which is no limit; ${bounds}`,
    expected: `"0" for no limit, or ${expected}`,
    parse: (value: string) => (value === '0' ? 0 : parse(value)),
  }
}

export function boolean<N extends string, D>(name: N, byDefault: D, about: About) {
  return {
    ...PLAIN,
    ...about,
    name,
    type: 'boolean' as const,
    default: byDefault,
    expected: '"true" or "false"',
    values: ['true', 'false'] as const,
    parse: (value: string) => (value === 'true' ? true : value === 'false' ? false : undefined),
  }
}

export function choice<N extends string, T extends string>(
  name: N,
  byDefault: T,
  values: readonly T[],
  about: About,
) {
  const quoted = values.map((value) => `"${value}"`)
  return {
    ...PLAIN,
    ...about,
    name,
    type: 'choice' as const,
    default: byDefault,
    values,
    expected: `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`,
    parse: (value: string) => values.find((known) => known === value),
  }
}

interface Text extends About {
  expected?: string
  accepts?(value: string): boolean
  secret?: boolean
}

export function text<N extends string>(
  name: N,
  { expected = 'at most 255 printable characters', accepts = isPrintable, ...about }: Text,
) {
  return {
    ...PLAIN,
    ...about,
    name,
    type: 'text' as const,
    default: undefined,
    expected: `${expected}; or an empty string for none`,
    parse: (value: string) => (value === '' || accepts(value) ? value : undefined),
  }
}

function parseWhole(value: string, most: number): number | undefined {
  if (!/^[1-9]\d{0,4}$/.test(value)) return undefined
  return Number(value) <= most ? Number(value) : undefined
}

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000 } as const

const DURATION =
  /^(?:([1-9]\d{0,5})d)?(?:([1-9]\d{0,5})h)?(?:([1-9]\d{0,5})m)?(?:([1-9]\d{0,5})s)?$/

/**
 * Reads a duration such as `1h`, `90m`, `1h30m` or `7d`: whole numbers without leading zeros, largest unit first.
 *
 * @returns milliseconds; `undefined` when it is anything else.
 */
export function parseDuration(value: string): number | undefined {
  const match = DURATION.exec(value)
  if (value === '' || !match) return undefined
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] = match
  return +days * UNITS.d + +hours * UNITS.h + +minutes * UNITS.m + +seconds * UNITS.s
}

const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?'
const HOST_NAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`)

export function isHost(value: string): boolean {
  return isIP(value) !== 0 || HOST_NAME.test(value)
}

/** Of a service that secrets, or parts of their hashes, are sent to. */
export function isEndpoint(value: string): boolean {
  if (!isPrintable(value) || !URL.canParse(value)) return false
  const url = new URL(value)
  const isHttp = url.protocol === 'https:' || url.protocol === 'http:'
  return isHttp && !isInTheClear(url) && !url.username && !url.password && !value.includes('#')
}

export function isPrintable(value: string): boolean {
  return value.length <= 255 && value.isWellFormed() && !/\p{C}/u.test(value)
}
