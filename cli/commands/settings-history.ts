import { Argument } from 'commander'
import { AdminApiError, type SettingsHistory } from '../../src/admin/client.ts'
import { wholeNumber } from '../arguments.ts'
import { option, row } from '../command.ts'
import { confirm, type Connection } from '../connection.ts'
import { refused } from '../exit-codes.ts'
import { aboutSecrets, historyText, nameOf, planOf } from '../history-words.ts'
import {
  changed,
  changeText,
  lineOf,
  type ChangeOptions,
  type ToldChange,
} from '../setting-changes.ts'

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

async function readHistory(_: unknown, { admin, output }: Connection): Promise<SettingsHistory> {
  const { answer } = await admin.settingsHistory()
  if (answer.versions.length === 1)
    output.note('There is no earlier version. From now on, the last 20 versions are kept.')
  return answer
}

async function rollBack(
  { version, dryRun = false }: ChangeOptions & { version: number },
  connection: Connection,
): Promise<ToldChange> {
  const { admin, output, yes } = connection
  const { answer, etag } = await admin.settingsHistory()
  const { values, unset, takesBack } = planOf(version, answer.versions)
  const { answer: before } = await admin.getSettings()

  async function change(isDryRun: boolean): Promise<ToldChange> {
    const options = { unset, ifMatch: etag, dryRun: isDryRun }
    const { answer: after } = await admin.putSettings(values, options).catch(explainStale)
    const told = changed(before, after, isDryRun)
    return { ...told, takes_back: takesBack.map((one) => one.version) }
  }

  const planned = await change(true)
  if (!output.isJson) {
    output.note(['This takes back:', ...takesBack.map((one) => `  ${nameOf(one)}`)].join('\n'))
    for (const each of [...aboutSecrets(planned, before), ...planned.warnings]) output.note(each)
  }
  if (dryRun || planned.changes.length === 0) return { ...planned, dry_run: dryRun }
  if (!yes) {
    output.note(
      ['It would change:', ...planned.changes.map((one) => `  ${lineOf(one)}`)].join('\n'),
    )
  }
  await confirm(connection, `Go back to version ${version}`)
  return change(false)
}

function explainStale(error: unknown): never {
  if (!(error instanceof AdminApiError) || error.status !== 412) throw error
  throw refused(
    error.code,
    'Nothing was changed: somebody else just changed the settings. See account-flows settings history, then try again.',
  )
}
