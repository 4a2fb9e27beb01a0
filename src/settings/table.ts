/** The settings (2.5). Parsing, the help of the command line, docs/settings.md and the OpenAPI file come from this table. */
import {
  DAY,
  MAX_PASSWORD_BYTES,
  boolean,
  choice,
  duration,
  isEndpoint,
  isHost,
  isPrintable,
  limit,
  number,
  pause,
  text,
  type Setting,
} from './kinds.ts'
import { isMailAddress } from './addresses.ts'

export const settingsTable = {
  passwordResetExpiration: duration('password_reset_expiration', '1h', 7 * DAY, {
    meaning: 'How long a password reset link stays valid.',
  }),
  requireEmailVerification: boolean('require_email_verification', 'false', {
    meaning: 'When true, unverified users cannot complete login.',
    strictest: 'true',
  }),
  emailVerificationExpiration: duration('email_verification_expiration', '24h', 30 * DAY, {
    meaning: 'How long a verification link stays valid.',
  }),
  invitationExpiration: duration('invitation_expiration', '7d', 30 * DAY, {
    meaning: 'How long an invitation stays valid.',
  }),
  emailLinkConfirmation: choice('email_link_confirmation', 'off', ['off', 'other_browser'], {
    meaning:
      'Where a verification link works. off: the link works in every browser, and signs that browser in. ' +
      'other_browser: it works only where a login of that account waits; any other browser shows a code instead, ' +
      'to be typed there.',
    strictest: 'other_browser',
  }),
  smtpHost: text('smtp_host', {
    meaning: 'SMTP server host name.',
    expected: 'a host name or an IP address, without port',
    accepts: isHost,
  }),
  smtpPort: number('smtp_port', undefined, 65_535, { meaning: 'SMTP server port, typically 587.' }),
  smtpUsername: text('smtp_username', { meaning: 'SMTP authentication user name.' }),
  smtpPassword: text('smtp_password', {
    meaning: 'SMTP authentication password.',
    secret: true,
  }),
  smtpAuth: choice('smtp_auth', 'password', ['password', 'xoauth2'], {
    meaning:
      'How to log in to the SMTP server. password: with smtp_username and smtp_password. ' +
      'xoauth2: with smtp_username and an access token. Microsoft 365 and Google need this.',
  }),
  smtpOauthTokenEndpoint: text('smtp_oauth_token_endpoint', {
    meaning: 'Address that gives access tokens, for smtp_auth xoauth2.',
    expected: 'an https address, or an http one of this machine',
    accepts: isEndpoint,
  }),
  smtpOauthClientId: text('smtp_oauth_client_id', { meaning: 'Client ID at the token endpoint.' }),
  smtpOauthClientSecret: text('smtp_oauth_client_secret', {
    meaning: 'Client secret at the token endpoint.',
    secret: true,
  }),
  smtpOauthRefreshToken: text('smtp_oauth_refresh_token', {
    meaning:
      'Refresh token of the mailbox. Without it, the client asks with its own credentials (client credentials grant).',
    expected: 'at most 4096 characters of ASCII',
    accepts: (value) => /^[!-~]{1,4096}$/.test(value),
    secret: true,
  }),
  smtpOauthScope: text('smtp_oauth_scope', { meaning: 'Scope to ask for at the token endpoint.' }),
  smtpFrom: text('smtp_from', {
    meaning: 'Sender e-mail address.',
    expected: 'one plain e-mail address',
    accepts: isMailAddress,
  }),
  smtpFromName: text('smtp_from_name', {
    meaning: 'Sender name, shown before the address.',
    expected: 'at most 64 printable characters, without spaces at its ends',
    accepts: (value) => isPrintable(value) && value.length <= 64 && value.trim() === value,
  }),
  mailReplyTo: text('mail_reply_to', {
    meaning: 'Address that replies to a mail go to. Without it, they go to the sender.',
    expected: 'one plain e-mail address',
    accepts: isMailAddress,
  }),
  passwordChangedEmail: boolean('password_changed_email', 'true', {
    meaning:
      'When true, the user gets a mail after a reset, an invitation or `flows.passwordChanged`. It says that the password was set or changed.',
  }),
  resetRequiresVerifiedEmail: boolean('reset_requires_verified_email', 'false', {
    meaning:
      'When true, a username gets no reset link until the address of its account is verified.',
    strictest: 'true',
  }),
  resetVerifiesEmail: boolean('reset_verifies_email', 'false', {
    meaning:
      'When true, a reset also verifies the address that got the link. The account must still have that address.',
    strictest: 'false',
  }),
  requestsPerIpPerMinute: limit('requests_per_ip_per_minute', '60', {
    meaning: 'How many forms one IP address may send in a minute. Further forms get status 429.',
  }),
  mailsPerAccountPerHour: limit('mails_per_account_per_hour', '10', {
    meaning:
      'How many mails may be asked for by name in an hour, for one account or one unverified mailbox. Logins have as many of their own. ' +
      'Further requests get no mail while the account has a link that works.',
  }),
  resendCooldown: pause('resend_cooldown', '0s', DAY, {
    meaning:
      'For how long no second mail of the same kind is sent, while the account has a link that works.',
  }),
  mailsPerMinute: limit('mails_per_minute', '600', {
    meaning: 'How many mails all processes together send in a minute. The others wait.',
  }),
  smtpTls: choice('smtp_tls', 'auto', ['auto', 'implicit', 'starttls', 'none'], {
    meaning:
      'TLS to the SMTP server. auto: implicit on port 465, otherwise STARTTLS. Only a loopback host may go without TLS. ' +
      'implicit: TLS from the first byte. starttls: STARTTLS must succeed. none: no TLS.',
    // The other values work only on some ports.
    strictest: 'auto',
  }),
  auditRetention: duration('audit_retention', '400d', 3650 * DAY, {
    // Links and dead letters are shown for a week, with their events.
    minDays: 7,
    meaning: 'How long the audit log keeps an event after it was recorded.',
  }),
  minPasswordLength: number('validation_min_password_length', '8', MAX_PASSWORD_BYTES, {
    meaning: 'Minimum length of a new password, in characters.',
    strictest: '15',
  }),
  maxPasswordLength: number('validation_max_password_length', '64', MAX_PASSWORD_BYTES, {
    meaning: 'Maximum length of a new password, in characters.',
  }),
  passwordBlocklist: choice('password_blocklist', 'off', ['off', 'common', 'pwned'], {
    meaning:
      'Which new passwords are refused besides those of the wrong length. off: none. ' +
      'common: 400,000 common ones, and names of the account and the service. ' +
      'pwned: also those that a range service knows as leaked.',
    strictest: 'common',
  }),
  passwordRangeUrl: text('password_range_url', {
    meaning:
      'Address of the range service for password_blocklist pwned. Five hexadecimal digits are put after it. ' +
      'Without it, the service of Have I Been Pwned is asked: https://api.pwnedpasswords.com/range/',
    expected: 'an https address, or an http one of this machine',
    accepts: isEndpoint,
  }),
} as const

export type SettingKey = keyof typeof settingsTable

/** The settings in force, parsed. Durations are milliseconds; `undefined`: there is no value. */
export type Settings = {
  [K in SettingKey]:
    | NonNullable<ReturnType<(typeof settingsTable)[K]['parse']>>
    | ((typeof settingsTable)[K]['default'] extends string ? never : undefined)
} & {
  /** Why no mail is sent, not even by a stand-in, whatever else is set. `undefined`: nothing stops the mails. */
  smtpFault?: string | undefined
}

type Table = typeof settingsTable

/** The settings by name, as they are sent over the wire. */
export type SettingTexts = { [K in SettingKey as Table[K]['name']]: TextOf<Table[K]> }

type TextOf<S> = S extends { values: readonly (infer V extends string)[] } ? V : string

/** Names of the settings that always have a value. */
export type DefaultedName = {
  [K in SettingKey]: Table[K]['default'] extends string ? Table[K]['name'] : never
}[SettingKey]

export const allSettings: readonly Setting<string | number | boolean>[] =
  Object.values(settingsTable)

const byName = new Map(allSettings.map((setting) => [setting.name, setting]))

export const settingNamed = (name: string) => byName.get(name)

/** Whether mails leave by SMTP, or wait for it: host, port and sender are set, or cannot be read. */
export function isSmtpConfigured({ smtpHost, smtpPort, smtpFrom, smtpFault }: Settings): boolean {
  const isSet = smtpHost !== undefined && smtpPort !== undefined && smtpFrom !== undefined
  return isSet || smtpFault !== undefined
}
