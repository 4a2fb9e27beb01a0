/**
 * What holds between settings, be each of them valid: the minimum is not above the maximum, and each secret is for one
 * server.
 *
 * @module
 */
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

/** Somebody may have stored a minimum above the maximum by hand: then neither counts. */
export function withoutContradiction(
  values: Record<string, string>,
  report?: Report,
): Record<string, string> {
  const [least, most] = lengthsOf(values)
  if (least <= most) return values
  const { [min.name]: minimum, [max.name]: maximum, ...others } = values
  const problem = `it is above ${max.name}; the defaults of both are in force`
  report?.(min.name, `${minimum} ${maximum}`, problem)
  return others
}

/** What to take away besides: whoever changes one of two that were stored by hand and exclude each other is rid of both. */
export function straysOf(plain: Record<string, string>, given: WantedSettings): WantedSettings {
  const isMeant = min.name in given || max.name in given
  if (!isMeant || withoutContradiction(plain) === plain) return {}
  return { [min.name]: undefined, [max.name]: undefined }
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

const { smtpHost: host, smtpPort: port, smtpPassword: password, smtpAuth: auth } = settingsTable
const {
  smtpOauthTokenEndpoint: endpoint,
  smtpOauthClientSecret,
  smtpOauthRefreshToken,
} = settingsTable
/** What each secret was given for: it is sealed for that, forgotten with it, and never sent to another server. */
const GIVEN_FOR: Record<string, string[]> = {
  [password.name]: [host.name, port.name],
  [smtpOauthClientSecret.name]: [endpoint.name],
  [smtpOauthRefreshToken.name]: [endpoint.name],
}
const SECRETS = Object.entries(GIVEN_FOR)

/** What a secret is sealed for: nobody who can write to the database gets it sent to another server. */
export function purposeOf(name: string, values: Record<string, string>): string {
  const given = (GIVEN_FOR[name] ?? []).map((each) => values[each] ?? '')
  return `${name} for ${given.join(' port ')}`
}

/** Names of what is sealed anew: given again for another server, a secret is sealed for that one. */
export function toSeal(changed: string[], values: Record<string, string>): string[] {
  const moved = SECRETS.filter(
    ([secret, servers]) => secret in values && servers.some((name) => changed.includes(name)),
  )
  return [...new Set([...changed, ...moved.map(([secret]) => secret)])]
}

/** The name of a secret, and of what changed without it. */
export type Forgotten = [secret: string, moved: string[]]

/** Where the server changes without them, its secrets go. */
export function forgetSecretsOfOtherServer(
  held: OpenedSettings,
  wanted: WantedSettings,
  values: Record<string, string>,
): Forgotten[] {
  return SECRETS.flatMap<Forgotten>(([secret, servers]) => {
    const moved = servers.filter((name) => values[name] !== held.plain[name])
    const isGiven = secret in wanted && wanted[secret] !== MASK
    if (moved.length === 0 || isGiven || !held.values[secret]) return []
    values[secret] = ''
    return [[secret, moved]]
  })
}

/** Whether the way of logging in that these values mean uses the secret. */
export function isOfLogin(secret: string, values: Record<string, string>): boolean {
  return (secret !== password.name) === (values[auth.name] === 'xoauth2')
}

/** Without the secrets that were given for it, the server is not spoken to: it would take or tell what it should not. */
export function usable({ values, inForce }: OpenedSettings): Record<string, string> {
  const isMissing = SECRETS.some(
    ([secret]) => isOfLogin(secret, inForce) && secret in values && !(secret in inForce),
  )
  if (!isMissing) return inForce
  const { [host.name]: _, ...others } = inForce
  return others
}

/** Those of `wanted` that have no stored value; a secret comes with its server, or not at all. */
export function unset(wanted: WantedSettings, stored: Record<string, string>): WantedSettings {
  const isForAnotherServer = (secret: string) =>
    (GIVEN_FOR[secret] ?? []).some(
      (name) => stored[name] !== undefined && stored[name] !== wanted[name],
    )
  return Object.fromEntries(
    Object.entries(wanted).filter(([name]) => !(name in stored) && !isForAnotherServer(name)),
  )
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
