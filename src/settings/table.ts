/**
 * The settings of section 2.5, in one place: names, defaults, what is accepted and what they mean.
 *
 * @module
 */
import { isIP } from 'node:net'
import { MAX_PASSWORD_BYTES } from '../crypto/password.ts'
import { isMailAddress } from '../mail-address.ts'
import { parseDuration } from './duration.ts'

export interface Setting<T> {
  /** Its name on the wire. */
  name: string
  /** As sent over the wire. `undefined`: none. */
  default: string | undefined
  /** What a value must be, to end the sentence "expected …". */
  expected: string
  meaning: string
  /** Secrets are encrypted at rest and shown as `"***"`. */
  secret: boolean
  /** `undefined`: not acceptable. */
  parse(value: string): T | undefined
}

const HOUR = 3_600_000
const DAY = 24 * HOUR
const MAX_LIMIT = 10_000

export const settingsTable = {
  passwordResetExpiration: duration('password_reset_expiration', '1h', 7 * DAY, {
    meaning: 'How long a password reset link stays valid.',
  }),
  requireEmailVerification: boolean('require_email_verification', 'false', {
    meaning: 'When true, unverified users cannot complete login.',
  }),
  emailVerificationExpiration: duration('email_verification_expiration', '24h', 30 * DAY, {
    meaning: 'How long a verification link stays valid.',
  }),
  smtpHost: text('smtp_host', {
    meaning: 'SMTP server host name.',
    expected: 'a host name or an IP address, without port; or an empty string for none',
    accepts: isHost,
  }),
  smtpPort: {
    name: 'smtp_port',
    default: undefined,
    meaning: 'SMTP server port, typically 587.',
    expected: 'a decimal number from 1 to 65535',
    secret: false,
    parse: (value: string) => parseWhole(value, 1, 65_535),
  },
  smtpUsername: text('smtp_username', {
    meaning: 'SMTP authentication user name.',
    expected: 'at most 255 printable characters; or an empty string for none',
    accepts: isPrintable,
  }),
  smtpPassword: text('smtp_password', {
    meaning: 'SMTP authentication password.',
    expected: 'at most 255 printable characters; or an empty string for none',
    accepts: isPrintable,
    secret: true,
  }),
  smtpFrom: text('smtp_from', {
    meaning: 'Sender e-mail address.',
    expected: 'one plain e-mail address; or an empty string for none',
    accepts: isMailAddress,
  }),
  passwordChangedEmail: boolean('password_changed_email', 'true', {
    meaning: 'When true, a mail tells the user that the password was changed by a reset.',
  }),
  resetRequiresVerifiedEmail: boolean('reset_requires_verified_email', 'false', {
    meaning:
      'When true, a username gets no reset link while the address of its account is not verified.',
  }),
  requestsPerIpPerMinute: limit('requests_per_ip_per_minute', '60', {
    meaning: 'How many forms one address may send in a minute; the others are answered 429.',
  }),
  mailsPerAccountPerHour: limit('mails_per_account_per_hour', '10', {
    meaning:
      'How many mails an account, and a mailbox, may ask for in an hour. ' +
      'Further requests get none while the account has a link to use.',
  }),
  resendCooldown: pause('resend_cooldown', '0s', DAY, {
    meaning: 'How long a request for the same kind of mail gets none while the account has a link.',
  }),
  mailsPerMinute: limit('mails_per_minute', '600', {
    meaning: 'How many mails leave in a minute, of all processes together; the others wait.',
  }),
  smtpTls: choice('smtp_tls', 'auto', ['auto', 'implicit', 'starttls', 'none'], {
    meaning:
      'TLS to the SMTP server. auto: implicit on port 465, otherwise STARTTLS, which only a loopback host may do without. ' +
      'implicit: from the first byte. starttls: it must succeed. none: never.',
  }),
  minPasswordLength: length('validation_min_password_length', '8', 'Minimum'),
  maxPasswordLength: length('validation_max_password_length', '64', 'Maximum'),
} as const

export type SettingKey = keyof typeof settingsTable

/** The settings in force, parsed. Durations are milliseconds; `undefined` is none. */
export type Settings = {
  [K in SettingKey]:
    | NonNullable<ReturnType<(typeof settingsTable)[K]['parse']>>
    | ((typeof settingsTable)[K]['default'] extends string ? never : undefined)
}

const byName = new Map<string, Setting<string | number | boolean>>(
  Object.values(settingsTable).map((setting) => [setting.name, setting]),
)

/** `undefined`: there is no setting of that name. */
export function settingNamed(name: string): Setting<string | number | boolean> | undefined {
  return byName.get(name)
}

export const allSettings: readonly Setting<string | number | boolean>[] = [...byName.values()]

function duration<D extends string>(name: string, byDefault: D, max: number, about: About) {
  return {
    ...about,
    name,
    default: byDefault,
    expected: `a duration from 1s to ${max / DAY}d, such as 1h, 90m, 1h30m or 7d`,
    secret: false,
    parse(value: string) {
      const ms = parseDuration(value)
      return ms === undefined || ms > max ? undefined : ms
    },
  }
}

function pause<D extends string>(name: string, byDefault: D, max: number, about: About) {
  return {
    ...duration(name, byDefault, max, about),
    expected: `"0s" for none, or a duration from 1s to ${max / DAY}d, such as 30s or 5m`,
    parse(value: string) {
      const ms = value === '0s' ? 0 : parseDuration(value)
      return ms === undefined || ms > max ? undefined : ms
    },
  }
}

function limit<D extends string>(name: string, byDefault: D, about: About) {
  return {
    ...about,
    name,
    default: byDefault,
    expected: `"0" for no limit, or a decimal number from 1 to ${MAX_LIMIT}`,
    secret: false,
    parse: (value: string) => (value === '0' ? 0 : parseWhole(value, 1, MAX_LIMIT)),
  }
}

function boolean<D extends string>(name: string, byDefault: D, about: About) {
  return {
    ...about,
    name,
    default: byDefault,
    expected: '"true" or "false"',
    secret: false,
    parse: (value: string) => (value === 'true' ? true : value === 'false' ? false : undefined),
  }
}

function choice<T extends string>(name: string, byDefault: T, values: T[], about: About) {
  const quoted = values.map((value) => `"${value}"`)
  return {
    ...about,
    name,
    default: byDefault,
    expected: `${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}`,
    secret: false,
    parse: (value: string) => values.find((known) => known === value),
  }
}

function length<D extends string>(name: string, byDefault: D, which: string) {
  return {
    name,
    default: byDefault,
    meaning: `${which} length of a new password, in characters.`,
    expected: `a decimal number from 1 to ${MAX_PASSWORD_BYTES}`,
    secret: false,
    parse: (value: string) => parseWhole(value, 1, MAX_PASSWORD_BYTES),
  }
}

interface About {
  meaning: string
}

function text(
  name: string,
  about: About & { expected: string; accepts(value: string): boolean; secret?: boolean },
) {
  const { meaning, expected, accepts, secret = false } = about
  return {
    name,
    default: undefined,
    meaning,
    expected,
    secret,
    parse: (value: string) => (value === '' || accepts(value) ? value : undefined),
  }
}

function parseWhole(value: string, min: number, max: number): number | undefined {
  if (!/^[1-9]\d{0,4}$/.test(value)) return undefined
  const number = Number(value)
  return number >= min && number <= max ? number : undefined
}

const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?'
const HOST_NAME = new RegExp(`^(?=.{1,253}$)${LABEL}(?:\\.${LABEL})*$`)

function isHost(value: string): boolean {
  return isIP(value) !== 0 || HOST_NAME.test(value)
}

function isPrintable(value: string): boolean {
  return value.length <= 255 && value.isWellFormed() && !/\p{C}/u.test(value)
}
