import type { SecretBox } from '../crypto/secret-box.ts'
import type { Report } from './setting.ts'
import { purposeOf } from './rules.ts'
import { settingNamed } from './table.ts'

/** Opens what is sealed; a secret that cannot be opened is left out. */
export function openAll(values: Record<string, string>, box: SecretBox, report: Report) {
  const opened: Record<string, string> = {}
  for (const [name, value] of Object.entries(values)) {
    const plain = isSealed(name, value) ? box.open(value, purposeOf(name, values)) : value
    if (plain === undefined)
      report(
        name,
        value,
        'this stored secret cannot be opened: no key in force does, or it was given for another smtp_host or smtp_port',
      )
    else opened[name] = plain
  }
  return opened
}

/** Seals the secrets among these settings. */
export function sealAll(names: string[], values: Record<string, string>, box: SecretBox) {
  const sealed: Record<string, string> = {}
  for (const name of names) {
    const value = values[name]
    if (value === undefined) continue
    sealed[name] = isSealed(name, value) ? box.seal(value, purposeOf(name, values)) : value
  }
  return sealed
}

export function isSealed(name: string, value: string): boolean {
  return settingNamed(name)?.secret === true && value !== ''
}
