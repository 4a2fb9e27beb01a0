import { newId } from '../crypto/token.ts'
import { recordAction } from './audit.ts'
import {
  invalidSettings,
  refusal,
  type AdminCaller,
  type AdminParts,
  type AdminRequest,
} from './operation.ts'
import type { SettingsInForce } from './settings-schema.ts'

/** What is answered where nothing was changed because of what is stored. */
export const REFUSALS = {
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

type Change = Omit<AdminRequest<{ dry_run: boolean }>, 'body'>

/** @param wanted - `undefined`: the setting loses its value. */
export async function changeSettings(
  wanted: Record<string, unknown>,
  request: Change,
  parts: AdminParts,
) {
  const { actor, ifMatch } = request
  const isDryRun = request.query.dry_run
  const outcome = await parts.settings.change(wanted, {
    by: { actor, at: parts.clock.now() },
    ifMatch,
    isDryRun,
    announce: (keys) => recordAction(parts, request, 'change_settings', { details: { keys } }),
  })
  if (typeof outcome === 'string') return REFUSALS[outcome]
  if (Array.isArray(outcome)) return invalidSettings('changed', outcome)
  const { settings, changed: keys, warnings, etag } = outcome
  const isUnrecorded = !isDryRun && keys.length > 0 && !(await isRecorded(keys, request, parts))
  const unrecorded = 'this change is in force, but it is missing in the audit log'
  return { answer: inForce(settings, isUnrecorded ? [...warnings, unrecorded] : warnings), etag }
}

// It is in force: whoever asked is not told that it failed because it could not be recorded.
async function isRecorded(
  keys: string[],
  { actor, requester }: AdminCaller,
  { audit, clock, log }: AdminParts,
): Promise<boolean> {
  try {
    const details = { keys, actor }
    await audit({ id: newId(), type: 'settings_changed', at: clock.now(), details, ...requester })
    return true
  } catch (error) {
    log('error', 'a change of settings was not recorded', { keys, error: String(error) })
    return false
  }
}

export function inForce(shown: Record<string, string>, warnings: string[] = []): SettingsInForce {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both are made of the table of settings
  return { ...shown, ...(warnings.length > 0 && { warnings }) } as SettingsInForce
}
