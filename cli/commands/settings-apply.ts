import { parseAll, unmetBy } from '../../src/settings/rules.ts'
import { option, row } from '../command.ts'
import { confirm, type Connection } from '../connection.ts'
import { canAsk } from '../prompt.ts'
import { changeSettings, changeText, valuesOf, type ChangeOptions } from '../setting-changes.ts'

export const applyCommands = [
  { name: 'settings apply', help: 'Set several settings that go together.' },
  row({
    name: 'settings apply recommended',
    help: 'Set the recommended values. Stricter values stay. Asks first at a terminal.',
    options: [option('--dry-run', 'show the changes, but make none')],
    examples: ['settings apply recommended --dry-run', 'settings apply recommended'],
    changes: true,
    run: applyRecommended,
    text: changeText,
  }),
]

/** If somebody else changes the settings while it asks, it asks again. */
function applyRecommended({ dryRun = false }: ChangeOptions, connection: Connection) {
  const { admin, output, run } = connection
  return changeSettings(connection, { dryRun }, async (options, before) => {
    const old = Object.fromEntries(valuesOf(before))
    const unmet = unmetBy(parseAll(old))
    if (unmet.length > 0 && !dryRun && canAsk(run.io)) {
      const lines = unmet.map(
        ({ name, value, reason }) => `  ${name}: ${old[name]} -> ${value}, so that ${reason}`,
      )
      output.note(['It would change:', ...lines].join('\n'))
      await confirm(connection, 'Set the recommended values')
    }
    const wanted = Object.fromEntries(unmet.map(({ name, value }) => [name, value]))
    return admin.putSettings(wanted, options)
  })
}
