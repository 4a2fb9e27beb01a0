/** What stored values mean, which valid values contradict each other or do not work together, and which are recommended. */
import {
  MAX_PASSWORD_BYTES,
  type Report,
  type Setting,
  type SettingProblem,
  type Values,
} from './kinds.ts'
import {
  allSettings,
  isSmtpConfigured,
  settingsTable,
  type SettingKey,
  type SettingTexts,
  type Settings,
} from './table.ts'

/** Stands for a secret in the admin API. If a client sends it back, the secret stays. */
export const MASK = '***'

/** Settings by name; `undefined` removes the stored value. */
export type WantedSettings = Record<string, unknown>

export interface OpenedSettings {
  values: Values
  /** With all secrets that a key opens, and without the others. */
  plain: Values
  /** `plain`, except for values that fail closed, and for a maximum below the minimum. */
  inForce: Values
}

/** The value, or the default if there is no valid one. Empty or `undefined`: it has none. */
function validOf(setting: Setting<unknown>, values: Values, report?: Report) {
  const value = values[setting.name]
  if (value === undefined) return setting.default
  if (setting.parse(value) !== undefined) return value
  report?.(setting.name, value, 'the stored value is not valid; the default is in force')
  return setting.default
}

/** A missing or invalid value becomes the default; `report` gets each invalid one. */
export function parseAll(values: Values, report?: Report): Settings {
  const parsed = Object.entries(settingsTable).map(([key, setting]) => {
    const value = validOf(setting, values, report)
    return [key, value ? setting.parse(value) : undefined]
  })
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each key of the table was parsed by its own entry
  return Object.fromEntries(parsed) as Settings
}

/** In force until the process has read the stored settings. */
export const strictestValues: Values = Object.fromEntries(
  allSettings.flatMap(({ name, strictest }) =>
    strictest === undefined ? [] : [[name, strictest]],
  ),
)

/** Replaces each invalid value of a setting that has `strictest`: by the one of `before`, else the default, else `strictest`. */
export function failClosed(values: Values, before: Values, report?: Report): Values {
  const closed = { ...values }
  for (const { name, strictest, default: byDefault, parse } of allSettings) {
    const value = values[name]
    if (strictest === undefined || value === undefined || parse(value) !== undefined) continue
    const kept = before[name] ?? byDefault ?? strictest
    closed[name] = kept
    report?.(name, value, `the stored value is not valid; ${kept} is in force`)
  }
  return closed
}

/** The settings as sent over the wire. Secrets are masked; settings without a value are left out. */
export function shownOf(values: Values): Values {
  const shown: Values = {}
  for (const setting of allSettings) {
    const value = validOf(setting, values)
    if (value) shown[setting.name] = setting.secret ? MASK : value
  }
  return shown
}

const { minPasswordLength: min, maxPasswordLength: max } = settingsTable

/** If the stored maximum is below the minimum, the greatest possible one is in force. */
export function withoutContradiction(values: Values, report?: Report): Values {
  const { minPasswordLength, maxPasswordLength } = parseAll(values)
  if (minPasswordLength <= maxPasswordLength) return values
  const problem = `it is below ${min.name}; ${MAX_PASSWORD_BYTES} is in force`
  report?.(max.name, values[max.name] ?? '', problem)
  return { ...values, [max.name]: String(MAX_PASSWORD_BYTES) }
}

/** A change of either length also removes a stored maximum that is below the minimum. */
export function straysOf({ plain, inForce }: OpenedSettings, given: WantedSettings) {
  const isMeant = min.name in given || max.name in given
  return isMeant && plain[max.name] !== inForce[max.name] ? { [max.name]: undefined } : {}
}

// Two lengths that contradict each other may have been stored by hand. Changes of other settings still work.
export function contradiction(values: Values, wanted: WantedSettings): SettingProblem[] {
  const { minPasswordLength: least, maxPasswordLength: most } = parseAll(values)
  if (least <= most) return []
  if (min.name in wanted) {
    return [{ key: min.name, expected: `at most ${max.name}, which is ${most}`, got: `"${least}"` }]
  }
  if (!(max.name in wanted)) return []
  return [{ key: max.name, expected: `at least ${min.name}, which is ${least}`, got: `"${most}"` }]
}

/** Names of the settings that the login at the mail server still needs. With neither username nor password, there is no login. */
export function missingForLogin(settings: Settings): string[] {
  const isByToken = settings.smtpAuth === 'xoauth2'
  if (!isByToken && !settings.smtpUsername && !settings.smtpPassword) return []
  const needed: SettingKey[] = isByToken
    ? ['smtpUsername', 'smtpOauthTokenEndpoint', 'smtpOauthClientId']
    : ['smtpUsername', 'smtpPassword']
  if (isByToken && !settings.smtpOauthRefreshToken) needed.push('smtpOauthClientSecret')
  return needed.filter((key) => settings[key] === undefined).map((key) => settingsTable[key].name)
}

/** What is valid, but does not work together. A change of settings answers it. */
export function warningsOf(values: Values, hasTransport: boolean): string[] {
  const settings = parseAll(values)
  const { smtpAuth, requireEmailVerification: isRequired } = settings
  const isConfigured = isSmtpConfigured(settings)
  const waits = !isConfigured && !hasTransport
  const missing = missingForLogin(settings)
  const rows: [isSo: boolean, warning: string][] = [
    [waits, 'SMTP is not configured, so mails wait: set smtp_host, smtp_port and smtp_from'],
    [
      waits && isRequired,
      'require_email_verification is true, but SMTP is not configured: unverified users cannot sign in until mails can be sent',
    ],
    [
      settings.emailLinkConfirmation === 'other_browser' && !isRequired,
      'email_link_confirmation is other_browser, but require_email_verification is false: no login waits, so no mailed link confirms an address',
    ],
    [
      isConfigured && missing.length > 0,
      smtpAuth === 'password'
        ? 'only one of smtp_username and smtp_password is set: no login to the mail server until both are'
        : `smtp_auth is xoauth2, but ${missing.join(' and ')} missing: no login to the mail server until you set it`,
    ],
    [
      settings.smtpTls === 'none',
      'smtp_tls is none: mails and the SMTP login are sent unencrypted',
    ],
  ]
  return rows.flatMap(([isSo, warning]) => (isSo ? warning : []))
}

interface Recommendation {
  name: keyof SettingTexts
  /** As sent over the wire. */
  value: string
  /** What it is good for, to end the sentence "so that …". */
  reason: string
  /** Whether these settings are as good or stricter. */
  isMet(settings: Settings): boolean
}

/** Values that suit most services better than the defaults, which follow the specification to the letter. */
export const recommendations: readonly Recommendation[] = [
  {
    name: 'email_link_confirmation',
    value: 'other_browser',
    reason: 'an address is confirmed only by a person who has its mailbox and knows the password',
    isMet: ({ emailLinkConfirmation }) => emailLinkConfirmation !== 'off',
  },
  {
    name: 'reset_requires_verified_email',
    value: 'true',
    reason:
      'reset links go only to verified addresses; with require_email_verification, people verify theirs',
    isMet: ({ resetRequiresVerifiedEmail }) => resetRequiresVerifiedEmail,
  },
  {
    name: 'resend_cooldown',
    value: '30s',
    reason: 'a second click sends no second mail',
    isMet: ({ resendCooldown }) => resendCooldown >= 30_000,
  },
  {
    name: 'password_blocklist',
    value: 'common',
    reason: 'no account has a password that attackers try first',
    isMet: ({ passwordBlocklist }) => passwordBlocklist !== 'off',
  },
  {
    name: 'validation_min_password_length',
    value: '15',
    reason: 'a password is hard to guess also where it is the only factor',
    // A minimum above a lower maximum would be refused, and all other changes with it.
    isMet: ({ minPasswordLength, maxPasswordLength }) =>
      minPasswordLength >= 15 || maxPasswordLength < 15,
  },
]

export function unmetBy(settings: Settings): Recommendation[] {
  return recommendations.filter(({ isMet }) => !isMet(settings))
}
