import { parseOne, type Report } from './setting.ts'
import { MASK, withoutContradiction } from './rules.ts'
import {
  allSettings,
  settingsTable,
  type Setting,
  type SettingKey,
  type Settings,
} from './table.ts'

/**
 * Reads opened values. A missing or invalid value becomes the default, and of two that contradict each other the minimum stays.
 * `report` gets each invalid one.
 */
export function parseAll(values: Record<string, string>, report?: Report): Settings {
  const consistent = withoutContradiction(values, report)
  const parsed: Record<string, unknown> = {}
  for (const [key, setting] of Object.entries<Setting<unknown>>(settingsTable)) {
    parsed[key] = parseOne(setting, consistent[setting.name], report)
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each key of the table was parsed by its own entry
  return parsed as { [K in SettingKey]: Settings[K] }
}

/** What is in force of a process that has read no settings yet. */
export const strictestValues: Record<string, string> = Object.fromEntries(
  allSettings.flatMap(({ name, strictest }) =>
    strictest === undefined ? [] : [[name, strictest]],
  ),
)

/** Opened values, where each setting with a strictest value that is not valid is as it was `before`; `report` is told. */
export function failClosed(
  values: Record<string, string>,
  before: Record<string, string>,
  report?: Report,
): Record<string, string> {
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

/** As sent over the wire: secrets masked, those without a value left out. */
export function shownOf(stored: Record<string, string>): Record<string, string> {
  const values = withoutContradiction(stored)
  const shown: Record<string, string> = {}
  for (const { name, default: byDefault, secret, parse } of allSettings) {
    const stored = values[name]
    const value = stored !== undefined && parse(stored) !== undefined ? stored : byDefault
    if (value) shown[name] = secret ? MASK : value
  }
  return shown
}
