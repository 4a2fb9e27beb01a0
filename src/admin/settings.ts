import * as z from 'zod'
import { newId } from '../crypto/token.ts'
import type { ToldVersion } from '../settings/history.ts'
import { isRecorded, recordAction } from './audit.ts'
import { inTime } from './in-time.ts'
import {
  invalidSettings,
  operation,
  refusal,
  type AdminParts,
  type AdminRequest,
} from './operation.ts'
import { dryRun, given, optional, TEXT, wireOf } from './schema.ts'
import {
  KeysRotation,
  Settings,
  SettingsHistory,
  SettingsInForce,
  SettingsVersion,
} from './settings-schema.ts'

const REFUSALS = {
  stale: refusal(
    412,
    'stale_settings',
    'Nothing was changed: the settings were changed since you read them (If-Match). Read them again.',
  ),
  unreadable: refusal(
    409,
    'settings_unreadable',
    'Nothing was changed: the stored settings cannot be read. Repair the record in the database, or delete it (docs/settings.md).',
  ),
}

export const settingsOperations = {
  getSettings: operation({
    route: 'GET /settings',
    scope: 'account-flows:read',
    summary: 'The settings in force.',
    answer: SettingsInForce,
    etag: true,
    async run({ tag }, { settingsKeeper, clock }) {
      const { settings, etag } = await inTime(clock, settingsKeeper.read())
      tag(etag)
      return inForce(settings)
    },
  }),

  settingsHistory: operation({
    route: 'GET /settings/history',
    scope: 'account-flows:read',
    summary: 'The last 20 versions of the settings: who changed what.',
    answer: SettingsHistory,
    etag: true,
    async run({ tag }, { settingsKeeper, clock }) {
      const history = await inTime(clock, settingsKeeper.history())
      if (history === 'unreadable') return REFUSALS.unreadable
      tag(history.etag)
      const toldOf = (version: ToldVersion) =>
        wireOf(SettingsVersion, { ...version, settings: version.values })
      return { versions: history.versions.map(toldOf) }
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
      const expected = 'a value, or to be unset'
      const both = (query.unset ?? []).filter((key) => key in body)
      if (both.length > 0) {
        const errors = both.map((key) => ({ key, expected, got: 'both' }))
        return invalidSettings('changed', errors)
      }
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

export const keysOperations = {
  rotateKeys: operation({
    route: 'POST /keys/rotate',
    scope: 'account-flows:settings',
    summary: 'Encrypts the stored secrets with the first key of the ring. Audited.',
    answer: KeysRotation,
    async run(request, parts) {
      await recordAction(parts, request, 'keys_rotate')
      const { store, settingsKeeper, clock, options } = parts
      const keys = options.secrets.length
      // One of them may be signed with any key of the ring.
      const oldKeysNeededUntil =
        keys > 1 ? await store.verificationTokens.latestExpiry(clock.now()) : undefined
      const by = { actor: request.actor, at: clock.now() }
      const outcome = await settingsKeeper.reseal({ by })
      if (outcome === 'unreadable') return REFUSALS.unreadable
      return wireOf(KeysRotation, { ...outcome, keys, oldKeysNeededUntil })
    },
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
  const { actor, requester, ifMatch } = request
  const { settingsKeeper, audit, clock } = parts
  const isDryRun = request.query.dry_run
  const outcome = await settingsKeeper.change(wanted, {
    by: { actor, at: clock.now() },
    ifMatch,
    isDryRun,
    announce: (keys) => recordAction(parts, request, 'change_settings', { details: { keys } }),
  })
  if (typeof outcome === 'string') return REFUSALS[outcome]
  if (Array.isArray(outcome)) return invalidSettings('changed', outcome)
  const { settings, changed: keys, warnings, etag } = outcome
  if (!isDryRun && keys.length > 0) {
    const event = { id: newId(), type: 'settings_changed', at: clock.now(), ...requester } as const
    const recorded = audit({ ...event, details: { keys, actor } })
    if (!(await isRecorded(parts, recorded, 'a change of settings', { keys })))
      warnings.push('this change is in force, but it is missing in the audit log')
  }
  request.tag(etag)
  return inForce(settings, warnings)
}

function inForce(shown: Record<string, string>, warnings: string[] = []): SettingsInForce {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both are made of the table of settings
  return { ...shown, ...(warnings.length > 0 && { warnings }) } as SettingsInForce
}
