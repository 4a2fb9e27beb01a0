/** A change of the settings: its checks, its warnings, and the secrets that it deletes. */
import type { Report, Setting, SettingProblem, Values } from './kinds.ts'
import {
  MASK,
  contradiction,
  failClosed,
  parseAll,
  straysOf,
  warningsOf,
  withoutContradiction,
  type OpenedSettings,
  type WantedSettings,
} from './rules.ts'
import { GIVEN_FOR, givenFor, isOfLogin } from './secrets.ts'
import { settingNamed, type Settings } from './table.ts'

const MAX_SHOWN = 64

/** The settings with all of these changes, or `problems`. `forgotten`: names of the secrets that are deleted with their server. */
export function applied(held: OpenedSettings, given: WantedSettings, hasTransport: boolean) {
  const problems: SettingProblem[] = []
  const values = { ...held.plain }
  const wanted: WantedSettings = { ...straysOf(held, given), ...given }
  for (const [key, value] of Object.entries(wanted)) {
    const setting = settingNamed(key)
    const expected = whyNot(setting, value)
    if (expected !== undefined) problems.push({ key, expected, got: shown(setting, value) })
    else if (typeof value !== 'string') delete values[key]
    else if (!(setting?.secret && value === MASK)) values[key] = value
  }
  if (problems.length > 0) return { problems }
  const forgotten = forgetSecrets(held, wanted, values)
  const closed = failClosed(values, held.inForce)
  const crossed = contradiction(closed, wanted)
  if (crossed.length > 0) return { problems: crossed }
  const inForce = withoutContradiction(closed)
  const warnings = [...forgotten.map(warningOf), ...warningsOf(inForce, hasTransport)]
  return { values, inForce, wanted, forgotten: forgotten.map(([secret]) => secret), warnings }
}

function warningOf([secret, moved]: Forgotten): string {
  const what = secret === 'smtp_password' ? 'password' : 'value'
  return `${moved.join(' and ')} changed without ${secret}: the old ${what} is deleted`
}

function whyNot(setting: Setting<unknown> | undefined, value: unknown): string | undefined {
  if (!setting) return 'the name of a setting'
  if (value === undefined || (setting.secret && value === MASK)) return undefined
  if (typeof value !== 'string') return `a string: ${setting.expected}`
  return setting.parse(value) === undefined ? setting.expected : undefined
}

// A misspelled name may be the name of a secret.
function shown(setting: Setting<unknown> | undefined, value: unknown): string {
  if (!setting) return 'an unknown name'
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

type Forgotten = [secret: string, moved: string[]]

/** Empties each secret whose server changes. */
function forgetSecrets(held: OpenedSettings, wanted: WantedSettings, values: Values) {
  return [...GIVEN_FOR].flatMap<Forgotten>(([secret, servers]) => {
    const moved = servers.filter((name) => values[name] !== held.plain[name])
    const isGiven = secret in wanted && wanted[secret] !== MASK
    if (moved.length === 0 || isGiven || !held.values[secret]) return []
    values[secret] = ''
    return [[secret, moved]]
  })
}

/** The settings in force. If no key opens a secret of the login, `smtpFault` says so. */
export function openedSettings({ values, inForce }: OpenedSettings, report?: Report): Settings {
  const locked = [...GIVEN_FOR.keys()].find(
    (secret) => isOfLogin(secret, inForce) && secret in values && !(secret in inForce),
  )
  const smtpFault = locked && `No key of the ring opens ${locked}`
  return { ...parseAll(inForce, report), smtpFault }
}

/** Those of `wanted` that have no stored value, without secrets for another server than the stored one. */
export function unset(wanted: WantedSettings, stored: Values): WantedSettings {
  const isForAnotherServer = (secret: string) =>
    givenFor(secret).some((name) => stored[name] !== undefined && stored[name] !== wanted[name])
  return Object.fromEntries(
    Object.entries(wanted).filter(([name]) => !(name in stored) && !isForAnotherServer(name)),
  )
}
