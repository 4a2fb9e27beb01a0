import type { SettingsInForce } from '../admin/api-types.ts'
import { newId } from '../crypto/token.ts'
import type { AuditEvent } from '../ports.ts'
import type { SettingsKeeper, SettingsOutcome } from '../settings/settings.ts'
import type { AdminEndpoints, AdminRefusal, AdminRequest } from './admin-router.ts'

export interface AdminSettingsParts {
  settings: SettingsKeeper
  audit(event: AuditEvent): Promise<void>
}

/** 4.5, D27. */
export function adminSettings({ settings, audit }: AdminSettingsParts) {
  type Change = AdminRequest<'putSettings' | 'unsetSettings'>

  async function changed(wanted: Record<string, unknown>, request: Change) {
    const { query, ifMatch, actor, requester } = request
    const isDryRun = query.dry_run === true
    const outcome = await settings.change(wanted, { ifMatch, isDryRun })
    if (typeof outcome === 'object' && 'changed' in outcome && !isDryRun) {
      const { changed: keys } = outcome
      if (keys.length > 0) {
        const event = { id: newId(), type: 'settings_changed', at: new Date() } as const
        await audit({ ...event, details: { keys, actor }, ...requester })
      }
    }
    return answerOf(outcome)
  }

  return {
    async getSettings() {
      const { settings: answer, etag } = await settings.read()
      return { answer, etag }
    },

    putSettings: (request) => changed({ ...request.body }, request),

    unsetSettings: (request) =>
      changed(Object.fromEntries(request.query.key.map((key) => [key, undefined])), request),
  } satisfies Partial<AdminEndpoints>
}

function answerOf(
  outcome: SettingsOutcome,
): { answer: SettingsInForce; etag: string } | AdminRefusal {
  if (outcome === 'stale') {
    const title =
      'Nothing was changed: the settings are not those of If-Match any more. Read them again.'
    return { status: 412, code: 'stale_settings', title }
  }
  if (Array.isArray(outcome)) {
    const title = 'Nothing was changed: some settings are not acceptable.'
    return { status: 400, code: 'invalid_settings', title, errors: outcome }
  }
  const { settings, warnings, etag } = outcome
  return { answer: { ...settings, ...(warnings.length > 0 && { warnings }) }, etag }
}
