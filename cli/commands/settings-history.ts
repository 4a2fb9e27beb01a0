import type { Command } from 'commander'
import { wholeNumber, withExamples } from '../arguments.ts'
import { connect } from '../connection.ts'
import { refused } from '../exit-codes.ts'
import { aboutSecrets, historyText, nameOf, planOf } from '../history-words.ts'
import { confirm } from '../prompt.ts'
import { changed, lineOf, tell, type ToldChange } from '../setting-changes.ts'
import { AdminApiError } from '../../src/admin/client.ts'

interface RollbackOptions {
  dryRun?: true
  yes?: true
}

export function addHistory(settings: Command): void {
  const history = settings
    .command('history')
    .description('Show the last 20 versions, newest first: when, who and what changed.')
    .action(showHistory)
  withExamples(history, 'settings history')

  const rollback = settings
    .command('rollback')
    .argument('<version>', 'version number, see settings history', wholeNumber(0, 999_999_999))
    .description('Go back to an earlier version of the settings. Secrets stay. Asks first.')
    .option('--dry-run', 'show the changes, but make none')
    .option('--yes', 'do not ask')
    .action(rollBack)
  withExamples(rollback, 'settings rollback 4 --dry-run', 'settings rollback 4')
}

async function showHistory(_: unknown, command: Command) {
  const { admin, output } = await connect(command)
  const { answer } = await admin.settingsHistory()
  output.answer(answer, ({ versions }) => historyText(versions, output))
  if (answer.versions.length === 1) {
    output.note(
      'There is no earlier version. From the next change on, the last 20 versions are kept.',
    )
  }
}

async function rollBack(version: number, { dryRun, yes }: RollbackOptions, command: Command) {
  const { admin, output, run, url } = await connect(command)
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
    const told = [...aboutSecrets(planned, before), ...(planned.warnings ?? [])]
    for (const sentence of told) output.note(sentence)
  }
  if (dryRun || planned.changes.length === 0) {
    return tell({ ...planned, dry_run: dryRun === true }, output)
  }
  if (!yes) {
    output.note(
      ['It would change:', ...planned.changes.map((one) => `  ${lineOf(one)}`)].join('\n'),
    )
  }
  await confirm(run.io, `Go back to version ${version} on ${url}?`, yes)
  tell(await change(false), output)
}

function explainStale(error: unknown): never {
  if (!(error instanceof AdminApiError) || error.status !== 412) throw error
  throw refused(
    error.code,
    'Nothing was changed: somebody else just changed the settings. See account-flows settings history, then try again.',
  )
}
