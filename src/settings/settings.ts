import { AccountFlowsError } from '../errors.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import type { Log, SettingsStore, StoredSettings } from '../ports.ts'
import {
  allSettings,
  settingNamed,
  settingsTable,
  type Setting,
  type SettingKey,
  type Settings,
} from './table.ts'

const MAX_ATTEMPTS = 10

/** What the admin API shows in place of a secret, and what sent back keeps it (D27). */
export const MASK = '***'

/** One thing wrong with a request to change settings. */
export interface SettingProblem {
  key: string
  expected: string
}

export interface SettingsChange {
  /** Names of the settings whose value is another one now. */
  changed: string[]
  warnings: string[]
}

export interface SettingsKeeper {
  /** The settings in force: held in memory, no round trip. */
  current(): Settings
  /** As sent over the wire, secrets masked, those without a value left out. */
  shown(): Record<string, string>
  /** Takes over what is stored, if it is newer. */
  refresh(): Promise<void>
  /** All keys are checked, then all are applied, or none (D27). Effective at once in this process. */
  change(wanted: Record<string, unknown>): Promise<SettingsChange | SettingProblem[]>
  /** Changes those of `wanted` that have no stored value. */
  changeUnset(wanted: Record<string, unknown>): Promise<SettingsChange | SettingProblem[]>
}

/** One version of the settings, as stored and as opened. */
interface Held extends StoredSettings {
  /** Without the secrets that no key opens. */
  plain: Record<string, string>
}

export function createSettingsKeeper(
  store: SettingsStore,
  box: SecretBox,
  log: Log,
): SettingsKeeper {
  let held: Held = { version: -1, values: {}, plain: {} }
  let current = parseAll({})
  let reported = new Map<string, string>()
  let last: Promise<unknown> = Promise.resolve()

  // One look or change after the other: none sees half of another, or takes back a newer one.
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = last.then(work, work)
    last = turn.catch(() => {})
    return turn
  }

  // Whatever the version says: a record edited by hand keeps its own. What is wrong with it is told once.
  async function takeOver(): Promise<void> {
    const stored = await store.read()
    const wrong = new Map<string, string>()
    const report: Report = (key, value, problem) => {
      wrong.set(key, value)
      if (reported.get(key) !== value) log('error', problem, { key })
    }
    if (stored.isUnreadable) report('values', '', 'the stored settings cannot be read')
    held = { ...stored, plain: await openAll(stored.values, box, report) }
    current = parseAll(held.plain, report)
    reported = wrong
  }

  async function change(wantedOf: (held: Held) => Record<string, unknown>) {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      await takeOver()
      const next = applied(held, wantedOf(held))
      if ('problems' in next) return next.problems
      const { values, warnings } = next
      const changed = Object.keys(values).filter((name) => values[name] !== held.plain[name])
      if (changed.length === 0) return { changed, warnings }
      const sealed = { ...held.values, ...(await sealAll(toSeal(changed, values), values, box)) }
      if (await store.write(sealed, held.version)) {
        await takeOver()
        return { changed, warnings }
      }
    }
    throw new AccountFlowsError('ERR_SETTINGS_CONFLICT', 'Too many changes at the same time')
  }

  return {
    current: () => current,
    shown: () => shownOf(held.plain),
    change: (wanted) => inTurn(() => change(() => wanted)),

    refresh: () =>
      inTurn(async () => {
        if ((await store.version()) !== held.version) await takeOver()
      }),

    changeUnset: (wanted) => inTurn(() => change(({ values }) => unset(wanted, values))),
  }
}

// The password comes with its host, or not at all.
function unset(wanted: Record<string, unknown>, stored: Record<string, string>) {
  const { smtpHost, smtpPassword } = settingsTable
  const host = stored[smtpHost.name]
  const isForAnotherHost = host !== undefined && host !== wanted[smtpHost.name]
  return Object.fromEntries(
    Object.entries(wanted).filter(
      ([name]) => !(name in stored) && !(name === smtpPassword.name && isForAnotherHost),
    ),
  )
}

type Applied =
  { values: Record<string, string>; warnings: string[] } | { problems: SettingProblem[] }

function applied(held: Held, wanted: Record<string, unknown>): Applied {
  const problems: SettingProblem[] = []
  const values = { ...held.plain }
  for (const [key, value] of Object.entries(wanted)) {
    const setting = settingNamed(key)
    if (!setting) problems.push({ key, expected: 'the name of a setting' })
    else if (typeof value !== 'string') problems.push({ key, expected: 'a string' })
    else if (setting.secret && value === MASK) continue
    else if (setting.parse(value) === undefined) problems.push({ key, expected: setting.expected })
    else values[key] = value
  }
  if (problems.length > 0) return { problems }
  const crossed = crossProblems(values, wanted)
  if (crossed.length > 0) return { problems: crossed }
  return forgetPasswordOfOtherHost(held, wanted, values)
}

function crossProblems(
  values: Record<string, string>,
  wanted: Record<string, unknown>,
): SettingProblem[] {
  const { minPasswordLength, maxPasswordLength } = parseAll(values)
  if (minPasswordLength <= maxPasswordLength) return []
  const { name: min } = settingsTable.minPasswordLength
  const { name: max } = settingsTable.maxPasswordLength
  return min in wanted
    ? [{ key: min, expected: `at most ${max}, which is ${maxPasswordLength}` }]
    : [{ key: max, expected: `at least ${min}, which is ${minPasswordLength}` }]
}

// The password was given for one server, and is never sent to another (D23).
function forgetPasswordOfOtherHost(
  held: Held,
  wanted: Record<string, unknown>,
  values: Record<string, string>,
): Applied {
  const host = settingsTable.smtpHost.name
  const password = settingsTable.smtpPassword.name
  const given = password in wanted && wanted[password] !== MASK
  const warnings: string[] = []
  if (values[host] !== held.plain[host] && !given && held.values[password]) {
    values[password] = ''
    warnings.push(`${host} changed without ${password}: the old password was forgotten`)
  }
  const { smtpHost, smtpPort, smtpFrom, smtpTls } = parseAll(values)
  if (!smtpHost || !smtpPort || !smtpFrom) {
    warnings.push(
      'SMTP is not configured: smtp_host, smtp_port and smtp_from are needed; mails wait',
    )
  }
  if (smtpTls === 'none') {
    warnings.push('smtp_tls is none: mails, and smtp_password with them, are sent in the clear')
  }
  return { values, warnings }
}

function shownOf(values: Record<string, string>): Record<string, string> {
  const shown: Record<string, string> = {}
  for (const { name, default: byDefault, secret, parse } of allSettings) {
    const stored = values[name]
    const value = stored !== undefined && parse(stored) !== undefined ? stored : byDefault
    if (value) shown[name] = secret ? MASK : value
  }
  return shown
}

type Report = (key: string, value: string, problem: string) => void

function parseAll(values: Record<string, string>, report?: Report): Settings {
  const parsed: Record<string, unknown> = {}
  for (const [key, setting] of Object.entries<Setting<unknown>>(settingsTable)) {
    parsed[key] = parseOne(setting, values[setting.name], report)
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each key of the table was parsed by its own entry
  return parsed as { [K in SettingKey]: Settings[K] }
}

function parseOne(setting: Setting<unknown>, value: string | undefined, report?: Report): unknown {
  if (value !== undefined) {
    const parsed = setting.parse(value)
    if (parsed !== undefined) return parsed === '' ? undefined : parsed
    report?.(setting.name, value, 'stored setting is not valid; its default is in force')
  }
  return setting.default === undefined ? undefined : setting.parse(setting.default)
}

async function openAll(values: Record<string, string>, box: SecretBox, report: Report) {
  const opened: Record<string, string> = {}
  for (const [name, value] of Object.entries(values)) {
    const plain =
      settingNamed(name)?.secret && value !== ''
        ? await box.open(value, purposeOf(name, values))
        : value
    if (plain === undefined)
      report(
        name,
        value,
        'this stored secret cannot be opened: no key in force does, or it was given for another smtp_host',
      )
    else opened[name] = plain
  }
  return opened
}

// The password was given for one server: nobody who can write to the database gets it sent to another.
function purposeOf(name: string, values: Record<string, string>): string {
  return `${name} for ${values[settingsTable.smtpHost.name] ?? ''}`
}

// Given again for another host, it is sealed for that one.
function toSeal(changed: string[], values: Record<string, string>): string[] {
  const { smtpHost, smtpPassword } = settingsTable
  const isMoved = changed.includes(smtpHost.name) && values[smtpPassword.name] !== undefined
  return isMoved ? [...new Set([...changed, smtpPassword.name])] : changed
}

async function sealAll(names: string[], values: Record<string, string>, box: SecretBox) {
  const sealed: Record<string, string> = {}
  for (const name of names) {
    const value = values[name] ?? ''
    sealed[name] =
      settingNamed(name)?.secret && value !== ''
        ? await box.seal(value, purposeOf(name, values))
        : value
  }
  return sealed
}
