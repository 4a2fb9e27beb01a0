import type { Command } from 'commander'
import { collect, withExamples } from '../arguments.ts'
import { connect } from '../connection.ts'
import { runOf, widthOf } from '../io.ts'
import { changeSettings, tellWarnings, valuesOf, type ChangeOptions } from '../setting-changes.ts'
import { requireNames, settingsHelp, valueOfUnset } from '../setting-names.ts'
import { givenSettings, readNames, type ValueSources } from '../setting-values.ts'
import { table } from '../table.ts'
import { addApply } from './settings-apply.ts'
import { addHistory } from './settings-history.ts'
import type { SettingsOptions } from '../../src/admin/client.ts'
import { allSettings } from '../../src/settings/table.ts'

export function addSettings(settings: Command): void {
  withExamples(settings, 'settings list', 'settings set smtp_host=mail.example.com smtp_port=587')

  const get = settings
    .command('get')
    .description('Print one setting, or all that have a value. Secrets are shown as ***.')
    .argument('[key]', 'name of a setting')
    .action(printSettings)
  withExamples(get, 'settings get smtp_host', 'settings get --json')

  const list = settings
    .command('list')
    .description('Show every setting: value, default, allowed values, meaning.')
    .action(listSettings)
  withExamples(list, 'settings list')

  const set = settings
    .command('set')
    .usage('[options] <key> <value> | <key>=<value>... | <secret>')
    .description('Change settings: all of them, or none. You are asked for a secret.')
    .argument('[settings...]', '<key> <value>, or one or more <key>=<value>')
    .option('--from-stdin <key>', 'read the value from stdin')
    .option('--from-file <key>=<path>', 'read the value from a file', collect)
    .option('--from-env <key>=<NAME>', 'read the value from an environment variable', collect)
    .option('--file <path>', 'JSON file with settings by name; - for stdin')
    .option('--dry-run', 'check everything, and change nothing')
    .option('--if-match <etag>', 'only while the settings still have this ETag')
    .action(setSettings)
  withExamples(
    set,
    'settings set password_reset_expiration 2h',
    'settings set smtp_host=mail.example.com smtp_port=587 smtp_from=no-reply@example.com',
    'settings set smtp_password',
    'settings set --from-file smtp_password=/run/secrets/smtp --dry-run',
  )
  set.addHelpText('after', () => settingsHelp(widthOf(runOf(set).io.stdout)))

  const unset = settings
    .command('unset')
    .description('Give settings their defaults back, or no value where there is none.')
    .argument('<key...>', 'names of settings')
    .option('--dry-run', 'check everything, and change nothing')
    .option('--if-match <etag>', 'only while the settings still have this ETag')
    .action(unsetSettings)
  withExamples(unset, 'settings unset smtp_password', 'settings unset resend_cooldown --dry-run')
  addApply(settings)
  addHistory(settings)
}

async function printSettings(key: string | undefined, _: unknown, command: Command) {
  const { admin, output } = await connect(command)
  const { answer } = await admin.getSettings()
  if (key === undefined) {
    tellWarnings(answer, output)
    output.answer(answer, (answer) => table(['setting', 'value'], valuesOf(answer), output.columns))
    return
  }
  const value = new Map(valuesOf(answer)).get(key) ?? valueOfUnset(key)
  output.answer(value, (value) => value ?? '')
}

async function listSettings(_: unknown, command: Command) {
  const { admin, output } = await connect(command)
  const { answer } = await admin.getSettings()
  const values = new Map(valuesOf(answer))
  const rows = allSettings.map((setting) => {
    const { name, type, bounds, expected, meaning, secret } = setting
    const value = values.get(name) || null
    const byDefault = setting.default ?? null
    return {
      name,
      value,
      default: byDefault,
      is_default: value === byDefault,
      type,
      bounds,
      expected,
      meaning,
      secret,
    }
  })
  tellWarnings(answer, output)
  output.answer(rows, (rows) =>
    table(
      ['differs', 'setting', 'value', 'default', 'type', 'meaning'],
      rows.map(({ name, value, default: byDefault, is_default, type, expected, meaning }) => [
        is_default ? '' : '*',
        name,
        value ?? 'none',
        byDefault ?? 'none',
        type,
        `${meaning} Expected: ${expected}.`,
      ]),
      output.columns,
    ).concat('\n\n* differs from the default'),
  )
}

async function setSettings(
  args: string[],
  options: ValueSources & ChangeOptions,
  command: Command,
) {
  const named = readNames(runOf(command).io, args, options)
  const connection = await connect(command)
  const settings = await givenSettings(connection.run, named)
  const put = (options: SettingsOptions) => connection.admin.putSettings(settings, options)
  await changeSettings(connection, options, put, settings)
}

async function unsetSettings(keys: string[], options: ChangeOptions, command: Command) {
  requireNames(keys)
  const connection = await connect(command)
  const unset = (options: SettingsOptions) => connection.admin.unsetSettings(keys, options)
  await changeSettings(connection, options, unset)
}
