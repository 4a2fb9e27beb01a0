import { failClosed, parseAll, parseOne, withoutContradiction } from './parse-all.ts'
import { isSmtpConfigured, settingNamed, settingsTable, type Setting } from './table.ts'

/** What the admin API shows in place of a secret, and what sent back keeps it. */
export const MASK = '***'

const MAX_SHOWN = 64

/** One thing wrong with a request to change settings. */
export interface SettingProblem {
  key: string
  expected: string
  /** What came; never the value of a secret, or of a setting that does not exist. */
  got: string
}

/** Settings by name; `undefined` takes the stored value away. */
export type WantedSettings = Record<string, unknown>

/** The settings as stored, with their secrets opened where a key does. */
export interface OpenedSettings {
  values: Record<string, string>
  plain: Record<string, string>
  /** `plain`, but for what fails closed. */
  inForce: Record<string, string>
}

type Applied =
  | {
      values: Record<string, string>
      inForce: Record<string, string>
      wanted: WantedSettings
      warnings: string[]
    }
  | { problems: SettingProblem[] }

/** The settings with these changes: all of them, or none and what is wrong. */
export function applied(held: OpenedSettings, given: WantedSettings): Applied {
  const problems: SettingProblem[] = []
  const values = { ...held.plain }
  const wanted = { ...straysOf(held.plain, given), ...given }
  for (const [key, value] of Object.entries(wanted)) {
    const setting = settingNamed(key)
    const expected = whyNot(setting, value)
    if (expected !== undefined) problems.push({ key, expected, got: shown(setting, value) })
    else if (typeof value !== 'string') delete values[key]
    else if (!(setting?.secret && value === MASK)) values[key] = value
  }
  if (problems.length > 0) return { problems }
  const crossed = crossProblems(values, wanted)
  if (crossed.length > 0) return { problems: crossed }
  const forgotten = forgetPasswordOfOtherServer(held, wanted, values)
  const inForce = failClosed(values, held.inForce)
  return { values, inForce, wanted, warnings: [...forgotten, ...warningsOf(inForce)] }
}

/** `undefined`: it is acceptable. */
function whyNot(setting: Setting<unknown> | undefined, value: unknown): string | undefined {
  if (!setting) return 'the name of a setting'
  if (value === undefined || (setting.secret && value === MASK)) return undefined
  if (typeof value !== 'string') return `a string: ${setting.expected}`
  return setting.parse(value) === undefined ? setting.expected : undefined
}

// A misspelled name may be that of a secret.
function shown(setting: Setting<unknown> | undefined, value: unknown): string {
  if (!setting) return 'a name that no setting has'
  if (typeof value !== 'string') return kindOf(value)
  if (setting.secret) return 'a value that is not shown'
  const text = JSON.stringify(value)
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

/** Two that were stored by hand and exclude each other count as neither; whoever changes one of them is rid of both. */
function straysOf(plain: Record<string, string>, given: WantedSettings): WantedSettings {
  const { minPasswordLength: min, maxPasswordLength: max } = settingsTable
  const isMeant = min.name in given || max.name in given
  if (!isMeant || withoutContradiction(plain) === plain) return {}
  return { [min.name]: undefined, [max.name]: undefined }
}

// Two that were stored by hand and exclude each other are no reason to refuse a change of something else.
function crossProblems(values: Record<string, string>, wanted: WantedSettings): SettingProblem[] {
  const { minPasswordLength: min, maxPasswordLength: max } = settingsTable
  const least = parseOne(min, values[min.name]) ?? Number(min.default)
  const most = parseOne(max, values[max.name]) ?? Number(max.default)
  if (least <= most) return []
  if (min.name in wanted) {
    return [{ key: min.name, expected: `at most ${max.name}, which is ${most}`, got: `"${least}"` }]
  }
  if (!(max.name in wanted)) return []
  return [{ key: max.name, expected: `at least ${min.name}, which is ${least}`, got: `"${most}"` }]
}

// The password was given for one server, and is never sent to another.
function forgetPasswordOfOtherServer(
  held: OpenedSettings,
  wanted: WantedSettings,
  values: Record<string, string>,
): string[] {
  const { smtpHost, smtpPort, smtpPassword } = settingsTable
  const password = smtpPassword.name
  const moved = [smtpHost.name, smtpPort.name].filter((name) => values[name] !== held.plain[name])
  const isGiven = password in wanted && wanted[password] !== MASK
  if (moved.length === 0 || isGiven || !held.values[password]) return []
  values[password] = ''
  return [`${moved.join(' and ')} changed without ${password}: the old password was forgotten`]
}

function warningsOf(values: Record<string, string>): string[] {
  const settings = parseAll(values)
  const { smtpTls, smtpUsername, smtpPassword } = settings
  const isConfigured = isSmtpConfigured(settings)
  const warnings: string[] = []
  if (!isConfigured) {
    warnings.push(
      'SMTP is not configured: smtp_host, smtp_port and smtp_from are needed; mails wait',
    )
  }
  if (!isConfigured && settings.requireEmailVerification) {
    warnings.push(
      'require_email_verification is true and SMTP is not configured: whoever is not verified cannot sign in until mails can leave',
    )
  }
  if (isConfigured && (smtpUsername === undefined) !== (smtpPassword === undefined)) {
    warnings.push('smtp_username and smtp_password count only together: there is no login now')
  }
  if (smtpTls === 'none') {
    warnings.push('smtp_tls is none: mails, and smtp_password with them, are sent in the clear')
  }
  return warnings
}
