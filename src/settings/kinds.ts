/** The kinds of settings: how each is read, and how it says what it accepts. */
import { isIP } from 'node:net'
import { isInTheClear } from './addresses.ts'

export interface Setting<T> {
  /** Its name on the wire. */
  name: string
  /** Its kind, for people. */
  type: string
  /** As sent over the wire. */
  default: string | undefined
  /** In force if the stored value is not valid and there was none before. `undefined`: the default is in force, whatever was before. */
  strictest?: string
  /** From the least to the greatest accepted value. `undefined`: `expected` says it all. */
  bounds: string | undefined
  /** What a value must be, to end the sentence "expected …". */
  expected: string
  /** All accepted values. `undefined`: they are too many to list. */
  values: readonly string[] | undefined
  meaning: string
  /** Secrets are encrypted at rest and shown as `"***"`. */
  secret: boolean
  /** `undefined`: the value is not acceptable. */
  parse(value: string): T | undefined
}

/** By name, as sent over the wire. */
export type Values = Record<string, string>

/** Gets what is wrong with a stored value. `problem` never holds the value. */
export type Report = (key: string, value: string, problem: string) => void

export interface SettingProblem {
  key: string
  expected: string
  /** What was sent; never the value of a secret, or of a setting that does not exist. */
  got: string
}

export const DAY = 86_400_000
/** bcrypt reads no further. */
export const MAX_PASSWORD_BYTES = 72
const MAX_LIMIT = 10_000

interface About {
  meaning: string
  strictest?: string
}

function row<T extends string, N extends string, D, A>(type: T, name: N, byDefault: D, about: A) {
  const plain = { bounds: undefined, values: undefined, secret: false }
  return { ...plain, ...about, type, name, default: byDefault }
}

export function duration<N extends string, D>(
  name: N,
  byDefault: D,
  max: number,
  { minDays = 0, ...about }: About & { minDays?: number },
) {
  const bounds = `${minDays === 0 ? '1s' : `${minDays}d`} to ${max / DAY}d`
  return {
    ...row('duration', name, byDefault, about),
    bounds,
    expected: `a duration from ${bounds}, such as ${minDays === 0 ? '1h, 90m, 1h30m or 7d' : '90d'}`,
    parse(value: string) {
      const ms = parseDuration(value)
      return ms === undefined || ms < minDays * DAY || ms > max ? undefined : ms
    },
  }
}

export function pause<N extends string, D>(name: N, byDefault: D, max: number, about: About) {
  const { bounds, parse, ...others } = duration(name, byDefault, max, about)
  return {
    ...others,
    bounds: `0s, which is none; ${bounds}`,
    expected: `"0s" for none, or a duration from ${bounds}, such as 30s or 5m`,
    parse: (value: string) => (value === '0s' ? 0 : parse(value)),
  }
}

export function number<N extends string, D>(name: N, byDefault: D, most: number, about: About) {
  return {
    ...row('number', name, byDefault, about),
    bounds: `1 to ${most}`,
    expected: `a decimal number from 1 to ${most}`,
    parse(value: string) {
      const whole = /^[1-9]\d{0,4}$/.test(value) ? Number(value) : undefined
      return whole !== undefined && whole <= most ? whole : undefined
    },
  }
}

export function limit<N extends string, D>(name: N, byDefault: D, about: About) {
  const { bounds, expected, parse, ...others } = number(name, byDefault, MAX_LIMIT, about)
  return {
    ...others,
    bounds: `0, which is no limit; ${bounds}`,
    expected: `"0" for no limit, or ${expected}`,
    parse: (value: string) => (value === '0' ? 0 : parse(value)),
  }
}

export function boolean<N extends string, D>(name: N, byDefault: D, about: About) {
  return {
    ...row('boolean', name, byDefault, about),
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
    ...row('choice', name, byDefault, about),
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
    ...row('text', name, undefined, about),
    expected: `${expected}; or an empty string for none`,
    parse: (value: string) => (value === '' || accepts(value) ? value : undefined),
  }
}

const DURATION =
  /^(?:([1-9]\d{0,5})d)?(?:([1-9]\d{0,5})h)?(?:([1-9]\d{0,5})m)?(?:([1-9]\d{0,5})s)?$/

/** Milliseconds of a duration such as `1h30m` or `7d`, largest unit first. */
export function parseDuration(value: string): number | undefined {
  const match = DURATION.exec(value)
  if (value === '' || !match) return undefined
  const [, days = 0, hours = 0, minutes = 0, seconds = 0] = match
  return (((+days * 24 + +hours) * 60 + +minutes) * 60 + +seconds) * 1000
}

const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?'
const HOST_NAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`)

export function isHost(value: string): boolean {
  return isIP(value) !== 0 || HOST_NAME.test(value)
}

/** Whether it can be the address of a service that gets secrets, or parts of their hashes. */
export function isEndpoint(value: string): boolean {
  if (!isPrintable(value) || !URL.canParse(value)) return false
  const url = new URL(value)
  const isHttp = url.protocol === 'https:' || url.protocol === 'http:'
  return isHttp && !isInTheClear(url) && !url.username && !url.password && !value.includes('#')
}

export function isPrintable(value: string): boolean {
  return value.length <= 255 && value.isWellFormed() && !/\p{C}/u.test(value)
}
