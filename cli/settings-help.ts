import { allSettings } from '../src/settings/table.ts'
import { table } from './table.ts'

/** Every setting, for the help of `settings set`. */
export function settingsHelp(columns: number | undefined): string {
  const rows = allSettings.map(
    ({ name, default: byDefault = 'none', meaning, expected, secret }) => [
      secret ? `${name} (secret)` : name,
      byDefault,
      `${meaning} Expected: ${expected}.`,
    ],
  )
  return `\nSettings:\n${table(['setting', 'default', 'meaning'], rows, columns)}`
}
