import * as z from 'zod'
import type { ToldVersion } from '../settings/history.ts'
import { inTime } from './in-time.ts'
import { invalidSettings, operation, type SettingProblem } from './operation.ts'
import { dryRun, given, optional, TEXT } from './schema.ts'
import { changeSettings, inForce, REFUSALS } from './settings-change.ts'
import { Settings, SettingsHistory, SettingsInForce } from './settings-schema.ts'

/** Reads and changes the settings (4.5). */
export const settingsOperations = {
  getSettings: operation({
    route: 'GET /settings',
    scope: 'account-flows:read',
    summary: 'The settings in force.',
    answer: SettingsInForce,
    etag: true,
    async run(_, { settings, clock }) {
      const { settings: shown, etag } = await inTime(clock, settings.read())
      return { answer: inForce(shown), etag }
    },
  }),

  settingsHistory: operation({
    route: 'GET /settings/history',
    scope: 'account-flows:read',
    summary: 'The last 20 versions of the settings: who changed what.',
    answer: SettingsHistory,
    etag: true,
    async run(_, { settings, clock }) {
      const history = await inTime(clock, settings.history())
      if (history === 'unreadable') return REFUSALS.unreadable
      const { versions, etag } = history
      return { answer: { versions: versions.map(toldVersion) }, etag }
    },
  }),

  putSettings: operation({
    route: 'PUT /settings',
    scope: 'account-flows:settings',
    summary: 'Changes settings: all keys are checked, then all are applied, or none.',
    query: z.strictObject({
      unset: optional(
        z
          .array(given, TEXT)
          .describe('Name of a setting to unset in the same step; may be repeated.'),
      ),
      dry_run: dryRun,
    }),
    body: Settings,
    answer: SettingsInForce,
    etag: true,
    async run(request, parts) {
      const { body, query } = request
      const errors = inBoth(body, query.unset)
      if (errors.length > 0) return invalidSettings('changed', errors)
      return changeSettings({ ...withoutValues(query.unset), ...body }, request, parts)
    },
  }),

  unsetSettings: operation({
    route: 'POST /settings/unset',
    scope: 'account-flows:settings',
    summary: 'Sets settings back to their defaults, or to no value if there is no default.',
    query: z.strictObject({
      key: z.array(given, TEXT).describe('Name of a setting; may be repeated.'),
      dry_run: dryRun,
    }),
    answer: SettingsInForce,
    etag: true,
    run: (request, parts) => changeSettings(withoutValues(request.query.key), request, parts),
  }),
}

function toldVersion({ values, ...version }: ToldVersion) {
  return { ...version, settings: values }
}

function inBoth(body: object, unset: string[] = []): SettingProblem[] {
  const expected = 'a value, or to be unset'
  return unset.filter((key) => key in body).map((key) => ({ key, expected, got: 'both' }))
}

function withoutValues(keys: string[] = []): Record<string, undefined> {
  return Object.fromEntries(keys.map((key) => [key, undefined]))
}
