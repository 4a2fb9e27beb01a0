import type { SettingTexts } from '../../src/settings/table.ts'

/** Values by setting. How durations are written, and how many milliseconds they are, test/settings/values.test.ts shows. */
const host = 'smtp.example'
const durations = ['', '0', '0s', '-1h', '1', '1.5h', ' 1h', '1h\n', '1H', '30m1h', '1h30m?', '١h']
const booleans = ['', 'TRUE', 'True', '1', '0', 'yes', 'on', 'false ', ' true', 'null']
const lengths = ['', '0', '-1', '8.0', '1e1', ' 8', '8 ', '08', '٨', '73', 'eight', 'NaN', '0x8']
const limits = ['', '-1', '00', '01', '1.0', '1e3', ' 5', '5 ', '٥', '10001', 'none', '0x8']
const lines = ['a\r\nb', 'a\nb', 'a\0b', 'a\tb', 'x'.repeat(256), '\u202Ea', '\uD800']

const ports = ['', '0', '-1', '65536', '587.5', '5e2', '0x19', '587abc', ' 587', '587 ', '0587']
const hosts = ['a b', ' ', 'x'.repeat(300), 'a\0b', '..', '-', ':::', '[::1]', 'bücher.example']
const otherHosts = [`${host}\r\nX: y`, `${host}\n`, `${host}:25`, '127.0.0.1:25', `.${host}`]
const hostsInUrls = [`smtp://${host}`, `user@${host}`, `${host}/x`]
const otherAddresses = ['a@b.example, c@d.example', 'A <a@b.example>', 'ä@b.example']
const addresses = ['a', '@b.example', 'a@', 'a@b@c.example', 'a @b.example', 'a@.', 'a@-b.example']

const notEndpoints = [
  ...lines,
  ...'token login.example/token ftp://login.example/token http://login.example/token'.split(' '),
  ...'https://me@login.example/ https://me:x@login.example/ https://login.example/#x'.split(' '),
  'javascript:alert(1)',
]

/** By key, each to be refused. */
export const badValues: Record<string, string[]> = {
  password_reset_expiration: [...durations, '8d', '604801s'],
  email_verification_expiration: [...durations, '31d'],
  invitation_expiration: [...durations, '31d'],
  audit_retention: [...durations, '6d', '604799s', '3651d', '2h'],
  resend_cooldown: [...durations.filter((value) => value !== '0s'), '0m', '00s', '25h', '86401s'],
  requests_per_ip_per_minute: limits,
  mails_per_account_per_hour: limits,
  mails_per_minute: limits,
  reset_requires_verified_email: booleans,
  reset_verifies_email: booleans,
  require_email_verification: booleans,
  password_changed_email: booleans,
  smtp_port: [...ports, '+25', '٢٥', '[25]', 'smtp', 'NaN'],
  smtp_host: [...hosts, ...otherHosts, ...hostsInUrls],
  email_link_confirmation: ['', 'OFF', ' off', 'never', 'true'],
  smtp_tls: ['', 'AUTO', 'Auto', ' auto', 'auto ', 'tls', 'true', 'false', 'required', 'auto\n'],
  smtp_username: lines,
  smtp_auth: ['', 'PASSWORD', 'oauth2', 'xoauth2 ', 'true'],
  password_blocklist: ['', 'COMMON', 'true', 'pwned '],
  password_range_url: notEndpoints,
  smtp_oauth_token_endpoint: notEndpoints,
  smtp_oauth_client_id: lines,
  smtp_oauth_client_secret: lines,
  smtp_oauth_refresh_token: ['a b', 'a\r\nb', 'ä', 'x'.repeat(4097)],
  smtp_oauth_scope: lines,
  smtp_password: lines,
  smtp_from_name: [...lines, 'x'.repeat(65), ' a', 'a '],
  smtp_from: [
    ...addresses,
    ...otherAddresses,
    'a@b.example\r\nBcc: c@d.example',
    ...'<a@b.example> a..b@c.example a@bücher.example .a@b.example'.split(' '),
    `${'a'.repeat(65)}@b.example`,
    `a@${'b.'.repeat(130)}example`,
    'a@b..example',
  ],
  validation_min_password_length: [...lengths, '65'],
  validation_max_password_length: lengths,
}

/** By key, each to be accepted, one after the other; the last one of each agrees with the others. */
export const goodValues: Record<keyof SettingTexts, string[]> = {
  password_reset_expiration: ['1s', '90m', '1h30m', '7d', '604800s', '2h'],
  require_email_verification: ['true', 'false'],
  email_verification_expiration: ['1s', '30d', '1d12h', '24h'],
  invitation_expiration: ['1s', '30d', '1d12h', '7d'],
  audit_retention: ['7d', '168h', '400d', '3650d'],
  email_link_confirmation: ['other_browser', 'off'],
  smtp_host: [
    ...'localhost 192.0.2.1 ::1 a_b.example SMTP-1.example xn--bcher-kva.example'.split(' '),
    '',
    host,
  ],
  smtp_port: ['1', '25', '587', '65535'],
  smtp_username: ['a b', 'me@idp.example', 'Jürgen K', 'x'.repeat(255), '', 'mailer'],
  smtp_password: ['hunter2', 'with = and -- and "quotes"', ' spaces ', '密码', 'x'.repeat(255), ''],
  smtp_auth: ['xoauth2', 'password'],
  smtp_oauth_token_endpoint: [
    'https://login.example/a/oauth2/v2.0/token?x=1',
    'http://localhost:8080/token',
    '',
  ],
  smtp_oauth_client_id: ['b6f5-11', ''],
  smtp_oauth_client_secret: ['with ~ and = "quotes"', 'x'.repeat(255), ''],
  smtp_oauth_refresh_token: ['0.AX~x/y+z==', 'x'.repeat(4096), ''],
  smtp_oauth_scope: ['https://outlook.office365.com/.default', 'a b', ''],
  smtp_from: ['a@b.example', "o'neill+tag@sub.b.example", '', 'no-reply@idp.example'],
  smtp_from_name: ['Support', 'Ünïcode, Inc.', 'x'.repeat(64), ''],
  password_changed_email: ['false', 'true'],
  reset_requires_verified_email: ['true', 'false'],
  reset_verifies_email: ['true', 'false'],
  requests_per_ip_per_minute: ['0', '1', '10000', '60'],
  mails_per_account_per_hour: ['0', '1', '10000', '10'],
  resend_cooldown: ['0s', '1s', '5m', '1d', '86400s', '30s'],
  mails_per_minute: ['0', '1', '10000', '600'],
  smtp_tls: ['implicit', 'starttls', 'none', 'auto'],
  password_blocklist: ['common', 'pwned', 'off'],
  password_range_url: ['https://ranges.example/range/', 'http://127.0.0.1:8080/?prefix=', ''],
  validation_min_password_length: ['1', '64', '8'],
  validation_max_password_length: ['8', '72', '64'],
}

export const badNames = [
  '',
  ' smtp_port',
  'smtp_port ',
  ...'unknown warnings _id version values $set'.split(' '),
  ...'SMTP_PORT smtpPort values.smtp_port settings.smtp_port'.split(' '),
  ...'constructor prototype toString hasOwnProperty'.split(' '),
]
