import type { SecretBox } from '../crypto/secret-box.ts'
import { settingNamed, settingsTable } from './table.ts'

/** Tells what is wrong with a stored value, never the value. */
export type Report = (key: string, value: string, problem: string) => void

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

/** Given again for another server, a password is sealed for that one. */
export function toSeal(changed: string[], values: Record<string, string>): string[] {
  const { smtpHost, smtpPort, smtpPassword } = settingsTable
  const isMoved =
    [smtpHost.name, smtpPort.name].some((name) => changed.includes(name)) &&
    values[smtpPassword.name] !== undefined
  return isMoved ? [...new Set([...changed, smtpPassword.name])] : changed
}

export function isSealed(name: string, value: string): boolean {
  return settingNamed(name)?.secret === true && value !== ''
}

// The password was given for one server: nobody who can write to the database gets it sent to another.
function purposeOf(name: string, values: Record<string, string>): string {
  const { smtpHost, smtpPort } = settingsTable
  return `${name} for ${values[smtpHost.name] ?? ''} port ${values[smtpPort.name] ?? ''}`
}
