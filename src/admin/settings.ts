import { newId } from '../crypto/token.ts'
import type { ToldVersion } from '../settings/history.ts'
import { givenFor } from '../settings/secrets.ts'
import type { SettingProblem, SettingsOutcome } from '../settings/settings.ts'
import { recordAction } from './audit.ts'
import type { Check, SettingsInForce } from './description.ts'
import { inTime } from './in-time.ts'
import type { AdminEndpoints, AdminParts, AdminRefusal, AdminRequest } from './parts.ts'

/** What is answered where nothing was changed because of what is stored. */
const REFUSALS = {
  stale: {
    status: 412,
    code: 'stale_settings',
    title:
      'Nothing was changed: the settings were changed since you read them (If-Match). Read them again.',
  },
  unreadable: {
    status: 409,
    code: 'settings_unreadable',
    title:
      'Nothing was changed: the stored settings cannot be read. Repair the record in the database, or delete it (docs/settings.md).',
  },
} satisfies Record<string, AdminRefusal>

/** Reads and changes the settings (4.5). */
export function settingsOperations(parts: AdminParts) {
  const { settings, store, audit, log, clock } = parts
  type Change = AdminRequest<'putSettings' | 'unsetSettings'>

  async function changed(wanted: Record<string, unknown>, request: Change) {
    const { query, ifMatch } = request
    const isDryRun = query.dry_run
    const outcome = await settings.change(wanted, {
      by: authorOf(request),
      ifMatch,
      isDryRun,
      announce: (keys) => recordAction(parts, request, 'change_settings', { details: { keys } }),
    })
    if (typeof outcome === 'string' || Array.isArray(outcome)) return answerOf(outcome)
    const { changed: keys, warnings } = outcome
    if (isDryRun || keys.length === 0 || (await isRecorded(keys, request))) return answerOf(outcome)
    const unrecorded = 'this change is in force, but it is missing in the audit log'
    return answerOf({ ...outcome, warnings: [...warnings, unrecorded] })
  }

  // It is in force: whoever asked is not told that it failed because it could not be recorded.
  async function isRecorded(keys: string[], { actor, requester }: Change): Promise<boolean> {
    try {
      const details = { keys, actor }
      await audit({ id: newId(), type: 'settings_changed', at: clock.now(), details, ...requester })
      return true
    } catch (error) {
      log('error', 'a change of settings was not recorded', { keys, error: String(error) })
      return false
    }
  }

  const authorOf = ({ actor }: { actor: string }) => ({ actor, at: clock.now() })

  return {
    async getSettings() {
      const { settings: shown, etag } = await inTime(clock, settings.read())
      return { answer: inForce(shown), etag }
    },

    async settingsHistory() {
      const history = await inTime(clock, settings.history())
      if (history === 'unreadable') return REFUSALS.unreadable
      const { versions, etag } = history
      return { answer: { versions: versions.map(toldVersion) }, etag }
    },

    async putSettings(request) {
      const { body, query } = request
      const errors = inBoth(body, query.unset)
      if (errors.length > 0) return notAcceptable('changed', errors)
      return changed({ ...withoutValues(query.unset), ...body }, request)
    },

    unsetSettings: (request) => changed(withoutValues(request.query.key), request),

    async rotateKeys(request) {
      await recordAction(parts, request, 'keys_rotate')
      const keys = parts.options.secrets.length
      // One of them may be signed with any key of the ring.
      const neededUntil =
        keys > 1 ? await store.verificationTokens.latestExpiry(clock.now()) : undefined
      const outcome = await settings.reseal({ by: authorOf(request) })
      if (outcome === 'unreadable') return REFUSALS.unreadable
      return { answer: { ...outcome, keys, old_keys_needed_until: neededUntil } }
    },
  } satisfies Partial<AdminEndpoints>
}

function inBoth(body: object, unset: string[] = []): SettingProblem[] {
  const expected = 'a value, or to be unset'
  return unset.filter((key) => key in body).map((key) => ({ key, expected, got: 'both' }))
}

function withoutValues(keys: string[] = []): Record<string, undefined> {
  return Object.fromEntries(keys.map((key) => [key, undefined]))
}

function toldVersion({ values, ...version }: ToldVersion) {
  return { ...version, settings: values }
}

function answerOf(
  outcome: SettingsOutcome,
): { answer: SettingsInForce; etag: string } | AdminRefusal {
  if (typeof outcome === 'string') return REFUSALS[outcome]
  if (Array.isArray(outcome)) return notAcceptable('changed', outcome)
  const { settings, warnings, etag } = outcome
  return { answer: inForce(settings, warnings), etag }
}

function inForce(shown: Record<string, string>, warnings: string[] = []): SettingsInForce {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both are made of the table of settings
  return { ...shown, ...(warnings.length > 0 && { warnings }) } as SettingsInForce
}

export function notAcceptable(what: 'changed' | 'sent', errors: SettingProblem[]): AdminRefusal {
  const title = `Nothing was ${what}: some settings are not valid.`
  return { status: 400, code: 'invalid_settings', title, errors }
}

/** Whoever reads that a secret is missing would set the one that is stored. */
export function withSecretsLeft(check: Check, [secret, ...more]: string[]): Check {
  if (secret === undefined || check.step !== 'configuration' || check.status !== 'warning')
    return check
  const names = [secret, ...more].join(' and ')
  return {
    ...check,
    message: `The stored ${names} ${more.length > 0 ? 'belong' : 'belongs'} to another ${givenFor(secret).join(' or ')} and stays there: no login was tried.`,
    advice: `Give it again: --set ${secret} asks for it.`,
  }
}
