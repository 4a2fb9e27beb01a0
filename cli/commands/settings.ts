import { Argument } from 'commander'
import type { SettingsOptions } from '../../src/admin/client.ts'
import { unmetBy, parseAll } from '../../src/settings/rules.ts'
import { allSettings } from '../../src/settings/table.ts'
import { collect, confirm, option, row, type Connection } from '../command.ts'
import { givenSettings, readNames, requireNames, type ValueSources } from '../given-settings.ts'
import { canAsk } from '../input.ts'
import {
  changeSettings,
  changeText,
  historyCommands,
  tellWarnings,
  valuesOf,
  type ChangeOptions,
} from './setting-changes.ts'
import { fitted, table } from '../table.ts'

const CHANGE_OPTIONS = [
  option('--dry-run', 'check everything, and change nothing'),
  option('--if-match <etag>', 'only while the settings still have this ETag'),
]

interface Given extends ValueSources, ChangeOptions {
  settings: string[]
}

export const settingsCommands = [
  { name: 'settings', help: 'Read and change settings.' },
  row({
    name: 'settings get',
    help: 'Print one setting, or all that have a value. Secrets are shown as ***.',
    argument: new Argument('[key]', 'name of a setting'),
    examples: ['settings get smtp_host', 'settings get --json'],
    check: ({ key }) => requireNames(key === undefined ? [] : [key]),
    run: readSettings,
    text: (answer, { columns }) =>
      typeof answer === 'object' && answer !== null
        ? table(['setting', 'value'], [...valuesOf(answer)], columns)
        : (answer ?? ''),
  }),
  row({
    name: 'settings list',
    help: 'Show every setting: value, default, allowed values, meaning.',
    examples: ['settings list'],
    run: listSettings,
    text: (settings, { columns }) =>
      table(
        ['differs', 'setting', 'value', 'default', 'type', 'meaning'],
        settings.map((setting) => [
          setting.is_default ? '' : '*',
          setting.name,
          setting.value ?? 'none',
          setting.default ?? 'none',
          setting.type,
          `${setting.meaning} Expected: ${setting.expected}.`,
        ]),
        columns,
      ).concat('\n\n* differs from the default'),
  }),
  row({
    name: 'settings set',
    help: 'Change settings: all of them, or none. You are asked for a secret.',
    argument: new Argument('[settings...]', '<key> <value>, or one or more <key>=<value>'),
    options: [
      option('--from-stdin <key>', 'read the value from stdin'),
      option('--from-file <key>=<path>', 'read the value from a file', collect),
      option('--from-env <key>=<NAME>', 'read the value from an environment variable', collect),
      option('--file <path>', 'JSON file with settings by name; - for stdin'),
      ...CHANGE_OPTIONS,
    ],
    examples: [
      'settings set password_reset_expiration 2h',
      'settings set smtp_host=mail.example.com smtp_port=587 smtp_from=no-reply@example.com',
      'settings set smtp_password',
      'settings set --from-file smtp_password=/run/secrets/smtp --dry-run',
    ],
    moreHelp: settingsHelp,
    changes: true,
    check: (given: Given, { io }) => void readNames(io, [given.settings], given),
    run: setSettings,
    text: changeText,
  }),
  row({
    name: 'settings unset',
    help: 'Give settings their defaults back, or no value where there is none.',
    argument: new Argument('<key...>', 'names of settings'),
    options: CHANGE_OPTIONS,
    examples: ['settings unset smtp_password', 'settings unset resend_cooldown --dry-run'],
    changes: true,
    check: ({ key }) => requireNames(key),
    run: ({ key, ...options }: ChangeOptions & { key: string[] }, connection) =>
      changeSettings(connection, options, (options) =>
        connection.admin.unsetSettings(key, options),
      ),
    text: changeText,
  }),
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
  ...historyCommands,
]

async function readSettings({ key }: { key?: string }, { admin, output }: Connection) {
  const { answer } = await admin.getSettings()
  if (key !== undefined) return valuesOf(answer).get(key) ?? null
  tellWarnings(answer, output)
  return answer
}

async function listSettings(_: unknown, { admin, output }: Connection) {
  const { answer } = await admin.getSettings()
  tellWarnings(answer, output)
  const values = valuesOf(answer)
  return allSettings.map(({ name, default: byDefault = null, ...setting }) => {
    const { type, bounds, expected, meaning, secret } = setting
    const value = values.get(name) || null
    const inForce = { name, value, default: byDefault, is_default: value === byDefault }
    return Object.assign(inForce, { type, bounds, expected, meaning, secret })
  })
}

/** For the help of `settings set`. */
function settingsHelp(columns: number | undefined): string {
  const rows = allSettings.map(({ name, secret, default: byDefault = 'none', ...setting }) => [
    secret ? `${name} (secret)` : name,
    byDefault,
    `${setting.meaning} Expected: ${setting.expected}.`,
  ])
  return `\nSettings:\n${fitted(table(['setting', 'default', 'meaning'], rows, columns), columns)}`
}

async function setSettings(given: Given, connection: Connection) {
  const { admin, run } = connection
  const settings = await givenSettings(run, readNames(run.io, [given.settings], given))
  const put = (options: SettingsOptions) => admin.putSettings(settings, options)
  return changeSettings(connection, given, put, settings)
}

/** If another admin changes the settings while it asks, it asks again. */
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
