import * as z from 'zod'
import { newId } from '../crypto/token.ts'
import { allSettings, type DefaultedName, type SettingTexts } from '../settings/table.ts'
import { isRecorded } from './audit.ts'
import {
  inTime,
  invalidSettings,
  operation,
  refusal,
  type AdminRequest,
  type AdminParts,
} from './operation.ts'
import { count, flag, given, list, object, optional, text, TEXT, time, wireOf } from './schema.ts'

const settingTexts = z.strictObject(
  Object.fromEntries(
    allSettings.map(({ name, meaning, expected, default: byDefault, values, secret }) => {
      const masked = secret ? ' Shown as "***"; "***" sent back keeps it.' : ''
      const description = `${meaning} Expected: ${expected}.${masked}`
      const kind: z.ZodType = values ? z.enum([...values]) : text
      const described = kind.meta({ description, default: byDefault })
      return [name, byDefault === undefined ? described.optional() : described]
    }),
  ),
)

export type Settings = Partial<SettingTexts>
/** This schema only describes: the settings check themselves, and say more. */
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- made of the table that the type is made of
export const Settings = settingTexts
  .partial()
  .describe('Settings by name. All values are strings.') as unknown as z.ZodType<Settings, Settings>

/** Settings with a default always have a value. */
export type SettingsInForce = Settings & Pick<SettingTexts, DefaultedName> & { warnings?: string[] }
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- as above
export const SettingsInForce = settingTexts
  .extend({ warnings: optional(list(text, 'Warnings about these settings.')) })
  .describe(
    'The settings in force. Settings without a value are left out.',
  ) as unknown as z.ZodType<SettingsInForce, SettingsInForce>

export type SettingsVersion = z.infer<typeof SettingsVersion>
export const SettingsVersion = object('One version of the settings.', {
  version: count,
  at: optional(time, 'Left out if a person edited the database.'),
  actor: optional(text, 'Who changed them: the token; `initialSettings`: the host.'),
  changes: list(
    object('A setting that changed. A value that was not stored is left out.', {
      key: text,
      before: optional(text),
      after: optional(text),
    }),
    'Left out if the version before is not kept. The values of secrets are never shown.',
  ).optional(),
  settings: z.record(text, text).describe('What was stored, without secrets.'),
})

export type SettingsHistory = z.infer<typeof SettingsHistory>
export const SettingsHistory = object('The last versions, newest first: the first is in force.', {
  versions: z.array(SettingsVersion),
})

const dryRun = flag
  .default(false)
  .describe('Checks everything and changes nothing. The answer shows the result.')

const STALE =
  'Nothing was changed: the settings were changed since you read them (If-Match). Read them again.'
const UNREADABLE =
  'Nothing was changed: the stored settings cannot be read. Repair the record in the database, or delete it (docs/settings.md).'
export const REFUSALS = {
  stale: refusal(412, 'stale_settings', STALE),
  unreadable: refusal(409, 'settings_unreadable', UNREADABLE),
}

export const settingsOperations = {
  getSettings: operation('GET /settings', 'account-flows:read', {
    summary: 'The settings in force.',
    answer: SettingsInForce,
    async run({ tag }, { settingsKeeper, clock }) {
      const { settings, etag } = await inTime(clock, settingsKeeper.read())
      tag(etag)
      return inForce(settings)
    },
  }),

  settingsHistory: operation('GET /settings/history', 'account-flows:read', {
    summary: 'The last 20 versions of the settings: who changed what.',
    answer: SettingsHistory,
    async run({ tag }, { settingsKeeper, clock }) {
      const history = await inTime(clock, settingsKeeper.history())
      if (history === 'unreadable') return REFUSALS.unreadable
      tag(history.etag)
      const versions = history.versions.map((version) =>
        wireOf(SettingsVersion, { ...version, settings: version.values }),
      )
      return { versions }
    },
  }),

  putSettings: operation('PUT /settings', 'account-flows:settings', {
    summary: 'Changes settings: all keys are checked, then all are applied, or none.',
    query: z.strictObject({
      unset: optional(
        z.array(given, TEXT),
        'Name of a setting to unset in the same step; may be repeated.',
      ),
      dry_run: dryRun,
    }),
    body: Settings,
    answer: SettingsInForce,
    async run(request, parts) {
      const { body, query } = request
      const both = (query.unset ?? []).filter((key) => Object.hasOwn(body, key))
      const expected = 'a value, or to be unset'
      const errors = both.map((key) => ({ key, expected, got: 'both' }))
      if (errors.length > 0) return invalidSettings('changed', errors)
      return changeSettings({ ...withoutValues(query.unset), ...body }, request, parts)
    },
  }),

  unsetSettings: operation('POST /settings/unset', 'account-flows:settings', {
    summary: 'Sets settings back to their defaults, or to no value if there is no default.',
    query: z.strictObject({
      key: z.array(given, TEXT).describe('Name of a setting; may be repeated.'),
      dry_run: dryRun,
    }),
    answer: SettingsInForce,
    run: (request, parts) => changeSettings(withoutValues(request.query.key), request, parts),
  }),
}

function withoutValues(keys: string[] = []): Record<string, undefined> {
  return Object.fromEntries(keys.map((key) => [key, undefined]))
}

/** @param wanted - `undefined`: the setting loses its value. */
async function changeSettings(
  wanted: Record<string, unknown>,
  request: Omit<AdminRequest<{ dry_run: boolean }>, 'body'>,
  parts: AdminParts,
) {
  const { actor, requester, ifMatch, record } = request
  const { settingsKeeper, audit, clock, log } = parts
  const isDryRun = request.query.dry_run
  const outcome = await settingsKeeper.change(wanted, {
    by: { actor, at: clock.now() },
    ifMatch,
    isDryRun,
    announce: (keys) => record('change_settings', { details: { keys } }),
  })
  if (typeof outcome === 'string') return REFUSALS[outcome]
  if (Array.isArray(outcome)) return invalidSettings('changed', outcome)
  const { settings, changed: keys, warnings, etag } = outcome
  if (!isDryRun && keys.length > 0) {
    const event = { id: newId(), type: 'settings_changed', at: clock.now(), ...requester } as const
    const recorded = audit({ ...event, details: { keys, actor } })
    if (!(await isRecorded(log, recorded, 'a change of settings', { keys })))
      warnings.push('this change is in force, but it is missing in the audit log')
  }
  request.tag(etag)
  return inForce(settings, warnings)
}

function inForce(shown: Record<string, string>, warnings: string[] = []): SettingsInForce {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both are made of the table of settings
  return { ...shown, ...(warnings.length > 0 && { warnings }) } as SettingsInForce
}
