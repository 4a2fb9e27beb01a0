import { Argument } from 'commander'
import {
  AdminApiError,
  type Settings,
  type SettingsInForce,
  type SettingsOptions,
  type SettingsVersion,
  type Tagged,
} from '../../src/admin/client.ts'
import { MASK } from '../../src/settings/rules.ts'
import { allSettings, settingNamed } from '../../src/settings/table.ts'
import { confirm, option, row, wholeNumber, type Connection } from '../command.ts'
import { refused, type CliError } from '../failure.ts'
import type { Output } from '../output.ts'
import { linesOf } from '../table.ts'

export const historyCommands = [
  row({
    name: 'settings history',
    help: 'Show the last 20 versions, newest first: when, who and what changed.',
    examples: ['settings history'],
    run: readHistory,
    text: ({ versions }, output) => historyText(versions, output),
  }),
  row({
    name: 'settings rollback',
    help: 'Go back to an earlier version of the settings. Secrets stay. Asks first.',
    argument: new Argument('<version>', 'version number, see settings history').argParser(
      wholeNumber(0, 999_999_999),
    ),
    options: [option('--dry-run', 'show the changes, but make none')],
    examples: ['settings rollback 4 --dry-run', 'settings rollback 4'],
    changes: true,
    run: rollBack,
    text: changeText,
  }),
]

async function readHistory(_: unknown, { admin, output }: Connection) {
  const { answer } = await admin.settingsHistory()
  if (answer.versions.length === 1)
    output.note('There is no earlier version. From now on, the last 20 versions are kept.')
  return answer
}

async function rollBack(
  { version, dryRun = false }: ChangeOptions & { version: number },
  connection: Connection,
) {
  const { admin, output, yes } = connection
  const { answer, etag } = await admin.settingsHistory()
  const { values, unset, takesBack } = planOf(version, answer.versions)
  const { answer: before } = await admin.getSettings()

  async function change(isDryRun: boolean) {
    const options = { unset, ifMatch: etag, dryRun: isDryRun }
    const { answer: after } = await admin.putSettings(values, options).catch(explainStale)
    const told = changed(before, after, isDryRun)
    // The versions that this undoes.
    return { ...told, takes_back: takesBack.map((one) => one.version) }
  }

  const planned = await change(true)
  if (!output.isJson) {
    output.note(['This takes back:', ...takesBack.map((one) => `  ${nameOf(one)}`)].join('\n'))
    for (const each of [...aboutSecrets(planned, before), ...planned.warnings]) output.note(each)
  }
  if (dryRun || planned.changes.length === 0) return { ...planned, dry_run: dryRun }
  const lines = planned.changes.map((one) => `  ${lineOf(one)}`)
  if (!yes) output.note(['It would change:', ...lines].join('\n'))
  await confirm(connection, `Go back to version ${version}`)
  return change(false)
}

function explainStale(error: unknown): never {
  if (!(error instanceof AdminApiError) || error.status !== 412) throw error
  throw refused(
    error.code,
    'Nothing was changed: another admin just changed the settings. See account-flows settings history, then try again.',
  )
}

function historyText(versions: SettingsVersion[], output: Output): string {
  const paragraphs = versions.map((version, index) => [
    output.paint('bold', `${nameOf(version)}${index === 0 ? ' (in force)' : ''}`),
    ...changesOf(version).map((line) => `  ${line}`),
  ])
  return paragraphs.flat().join('\n')
}

function nameOf({ version, at, actor }: SettingsVersion): string {
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

/** The changes that bring back the settings of a version, and the versions that this undoes, newest first. */
function planOf(version: number, versions: SettingsVersion[]) {
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

/** The history holds no secrets, so it brings none back. */
function aboutSecrets({ changes }: ToldChange, before: SettingsInForce): string[] {
  const had = valuesOf(before)
  return allSettings
    .filter(({ name, secret }) => secret && had.has(name))
    .map(({ name }) =>
      changes.some(({ key }) => key === name)
        ? `${name} is deleted: it belongs to another server, and the history has no secrets. Set it again afterwards: account-flows settings set ${name}`
        : `${name} stays as it is: the history has no secrets.`,
    )
}

const TRIES = 3

export interface ChangeOptions {
  dryRun?: boolean
  ifMatch?: string | undefined
}

/**
 * Changes settings, prints warnings, and answers the difference. If another admin changes them meanwhile, it tries again, unless there is
 * `ifMatch`. `given` has the new values by key, if there are some.
 */
export async function changeSettings(
  { admin, output }: Connection,
  { dryRun = false, ifMatch }: ChangeOptions,
  change: (options: SettingsOptions, before: SettingsInForce) => Promise<Tagged<SettingsInForce>>,
  given?: Settings,
) {
  for (let tries = 1; ; tries++) {
    const { answer: before, etag } = await admin.getSettings()
    try {
      const { answer: after } = await change({ dryRun, ifMatch: ifMatch ?? etag }, before)
      tellWarnings(after, output)
      return changed(before, after, dryRun, given)
    } catch (error) {
      const isStale = error instanceof AdminApiError && error.status === 412
      if (!isStale || ifMatch !== undefined || tries === TRIES) throw error
    }
  }
}

/** What a change did, or would do. A secret is never shown. `null`: there is no value. */
function changed(
  before: SettingsInForce,
  after: SettingsInForce,
  isDryRun: boolean,
  given: { [key: string]: string | undefined } = {},
) {
  const [old, now] = [valuesOf(before), valuesOf(after)]
  const changes = [...new Set([...old.keys(), ...now.keys()])].flatMap((key) => {
    const change = { key, before: old.get(key) || null, after: now.get(key) || null }
    const isReplaced = change.after === MASK && (given[key] ?? MASK) !== MASK
    return change.before === change.after && !isReplaced ? [] : [change]
  })
  return { dry_run: isDryRun, changes, warnings: after.warnings ?? [] }
}

/** The settings by name, without their warnings. */
export function valuesOf(settings: SettingsInForce): Map<string, string> {
  const texts = Object.entries(settings).flatMap(([key, value]): [string, string][] =>
    typeof value === 'string' ? [[key, value]] : [],
  )
  return new Map(texts)
}

type ToldChange = ReturnType<typeof changed>

export function changeText({ changes, dry_run: dryRun }: ToldChange): string {
  if (changes.length === 0) return dryRun ? 'Nothing would change.' : 'Nothing changed.'
  const begin = dryRun && 'Nothing was changed. These are the changes:'
  return linesOf(begin, ...changes.map(lineOf))
}

export function tellWarnings({ warnings = [] }: { warnings?: string[] }, output: Output): void {
  for (const warning of warnings) output.note(`Warning: ${warning}`)
}

function lineOf({ key, before, after }: ToldChange['changes'][number]): string {
  if (after === MASK) return `${key}: set`
  if (before === MASK) return `${key}: forgotten`
  return `${key}: ${before ?? 'none'} -> ${after ?? 'none'}`
}
