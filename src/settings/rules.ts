/** What holds between settings, be each of them valid: the minimum is not above the maximum, and what a login needs. */
import { MAX_PASSWORD_BYTES } from './kinds.ts'
import { parseOne, type Report, type SettingProblem } from './setting.ts'
import { settingsTable, type SettingKey, type Settings } from './table.ts'

/** What the admin API shows in place of a secret, and what sent back keeps it. */
export const MASK = '***'

/** Settings by name; `undefined` takes the stored value away. */
export type WantedSettings = Record<string, unknown>

/** The settings as stored, with their secrets opened where a key does. */
export interface OpenedSettings {
  values: Record<string, string>
  plain: Record<string, string>
  /** `plain`, but for what fails closed. */
  inForce: Record<string, string>
}

const { minPasswordLength: min, maxPasswordLength: max } = settingsTable

/** The minimum and the maximum that these values mean. */
function lengthsOf(values: Record<string, string>): [least: number, most: number] {
  const least = parseOne(min, values[min.name]) ?? Number(min.default)
  return [least, parseOne(max, values[max.name]) ?? Number(max.default)]
}

/** Somebody may have stored a maximum below the minimum by hand: then the greatest one is in force. */
export function withoutContradiction(
  values: Record<string, string>,
  report?: Report,
): Record<string, string> {
  const [least, most] = lengthsOf(values)
  if (least <= most) return values
  const problem = `it is below ${min.name}; ${MAX_PASSWORD_BYTES} is in force`
  report?.(max.name, values[max.name] ?? '', problem)
  return { ...values, [max.name]: String(MAX_PASSWORD_BYTES) }
}

/** What to take away besides: a maximum that was stored by hand below the minimum goes with a change of either. */
export function straysOf(inForce: Record<string, string>, given: WantedSettings): WantedSettings {
  const isMeant = min.name in given || max.name in given
  if (!isMeant || withoutContradiction(inForce) === inForce) return {}
  return { [max.name]: undefined }
}

// Two that were stored by hand and exclude each other are no reason to refuse a change of something else.
export function contradiction(
  values: Record<string, string>,
  wanted: WantedSettings,
): SettingProblem[] {
  const [least, most] = lengthsOf(values)
  if (least <= most) return []
  if (min.name in wanted) {
    return [{ key: min.name, expected: `at most ${max.name}, which is ${most}`, got: `"${least}"` }]
  }
  if (!(max.name in wanted)) return []
  return [{ key: max.name, expected: `at least ${min.name}, which is ${least}`, got: `"${most}"` }]
}

/** Names of what a login needs and has not. One that has nothing at all is none. */
export function missingForLogin(settings: Settings): string[] {
  const isByToken = settings.smtpAuth === 'xoauth2'
  if (!isByToken && !settings.smtpUsername && !settings.smtpPassword) return []
  const needed: SettingKey[] = isByToken
    ? ['smtpUsername', 'smtpOauthTokenEndpoint', 'smtpOauthClientId']
    : ['smtpUsername', 'smtpPassword']
  if (isByToken && !settings.smtpOauthRefreshToken) needed.push('smtpOauthClientSecret')
  return needed.filter((key) => settings[key] === undefined).map((key) => settingsTable[key].name)
}
