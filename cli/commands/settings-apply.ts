import type { Command } from 'commander'
import { withExamples } from '../arguments.ts'
import { connect } from '../connection.ts'
import { changeSettings, valuesOf, type ChangeOptions } from '../setting-changes.ts'
import { unmetBy } from '../../src/settings/recommended.ts'
import { parseAll } from '../../src/settings/rules.ts'

export function addApply(settings: Command): void {
  const apply = settings
    .command('apply')
    .description('Set several settings that go together.')
    .helpCommand(false)
  const recommended = apply
    .command('recommended')
    .description('Set the recommended values. Stricter values stay.')
    .option('--dry-run', 'show the changes, but make none')
    .action(applyRecommended)
  const examples = ['settings apply recommended --dry-run', 'settings apply recommended'] as const
  withExamples(apply, ...examples)
  withExamples(recommended, ...examples)
}

async function applyRecommended(options: Pick<ChangeOptions, 'dryRun'>, command: Command) {
  const connection = await connect(command)
  await changeSettings(connection, options, (options, before) => {
    const unmet = unmetBy(parseAll(Object.fromEntries(valuesOf(before))))
    const wanted = Object.fromEntries(unmet.map(({ name, value }) => [name, value]))
    return connection.admin.putSettings(wanted, options)
  })
}
