import { refused, type CliError } from './exit-codes.ts'
import type { Output } from './output.ts'
import { valuesOf, type ToldChange } from './setting-changes.ts'
import type { SettingsInForce, SettingsVersion } from '../src/admin/client.ts'
import { allSettings, settingNamed } from '../src/settings/table.ts'

export function historyText(versions: SettingsVersion[], output: Output): string {
  const paragraphs = versions.map((version, index) => [
    output.paint('bold', `${nameOf(version)}${index === 0 ? ' (in force)' : ''}`),
    ...changesOf(version).map((line) => `  ${line}`),
  ])
  return paragraphs.flat().join('\n')
}

export function nameOf({ version, at, actor }: SettingsVersion): string {
  if (version === 0) return 'version 0: before the first change'
  return `version ${version}: ${at ?? 'time unknown'}, ${actor ?? 'person unknown'}`
}

function changesOf({ version, changes }: SettingsVersion): string[] {
  if (changes === undefined) return version === 0 ? [] : ['its changes are not kept']
  if (changes.length === 0) return ['no value; only the encryption key of the secrets']
  return changes.map(({ key, before, after }) =>
    settingNamed(key)?.secret
      ? `${key}: changed`
      : `${key}: ${valueText(key, before)} -> ${valueText(key, after)}`,
  )
}

function valueText(key: string, stored: string | undefined): string {
  const byDefault = settingNamed(key)?.default
  if (stored === undefined && byDefault !== undefined) return `${byDefault} (default)`
  return stored || 'none'
}

/** What makes the settings those of a version, and which versions it takes back, newest first. */
export function planOf(version: number, versions: SettingsVersion[]) {
  const [present] = versions
  const wanted = versions.find((one) => one.version === version)
  if (!present || !wanted || wanted === present) throw noWayBack(version, versions)
  const others = Object.entries(wanted.settings).filter(
    ([key, value]) => present.settings[key] !== value,
  )
  return {
    values: Object.fromEntries(others),
    unset: Object.keys(present.settings).filter((key) => !(key in wanted.settings)),
    takesBack: versions.slice(0, versions.indexOf(wanted)),
  }
}

function noWayBack(version: number, versions: SettingsVersion[]): CliError {
  const [present, before] = versions
  const oldest = versions.at(-1)?.version
  const see = 'See: account-flows settings history'
  if (version === present?.version) {
    const undo = before && ` To undo its changes, go back to version ${before.version}.`
    const text = `Nothing was changed: version ${version} is in force already.${undo ?? ''} ${see}`
    return refused('version_in_force', text)
  }
  const why =
    version > (present?.version ?? 0)
      ? `there is no version ${version} yet`
      : `version ${version} is not kept any more`
  const text = `Nothing was changed: ${why}. There are versions ${oldest} to ${present?.version}. ${see}`
  return refused('unknown_version', text)
}

/** No secret is in the history, so that none comes back. */
export function aboutSecrets({ changes }: ToldChange, before: SettingsInForce): string[] {
  const had = new Map(valuesOf(before))
  return allSettings
    .filter(({ name, secret }) => secret && had.has(name))
    .map(({ name }) =>
      changes.some(({ key }) => key === name)
        ? `${name} is deleted: it belongs to another server, and the history has no secrets. Set it again afterwards: account-flows settings set ${name}`
        : `${name} stays as it is: the history has no secrets.`,
    )
}
