import type { Report } from './sealing.ts'
import { settingsTable, type Setting, type SettingKey, type Settings } from './table.ts'

/** Reads opened values; one that is missing or not valid is the default, and `report` is told of the latter. So are two that exclude each other. */
export function parseAll(values: Record<string, string>, report?: Report): Settings {
  const parsed: Record<string, unknown> = {}
  for (const [key, setting] of Object.entries<Setting<unknown>>(settingsTable)) {
    parsed[key] = parseOne(setting, values[setting.name], report)
  }
  const { minPasswordLength: min, maxPasswordLength: max } = settingsTable
  if (Number(parsed['minPasswordLength']) > Number(parsed['maxPasswordLength'])) {
    report?.(
      min.name,
      values[min.name] ?? '',
      `it is above ${max.name}; the defaults of both are in force`,
    )
    parsed['minPasswordLength'] = min.parse(min.default)
    parsed['maxPasswordLength'] = max.parse(max.default)
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- each key of the table was parsed by its own entry
  return parsed as { [K in SettingKey]: Settings[K] }
}

export function parseOne<T>(
  setting: Setting<T>,
  value: string | undefined,
  report?: Report,
): T | undefined {
  if (value !== undefined) {
    const parsed = setting.parse(value)
    if (parsed !== undefined) return parsed === '' ? undefined : parsed
    report?.(setting.name, value, 'stored setting is not valid; its default is in force')
  }
  return setting.default === undefined ? undefined : setting.parse(setting.default)
}
