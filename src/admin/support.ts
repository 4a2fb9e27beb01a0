import type { LinkExplanation } from './link-explanation.ts'
import { isStoreUnavailable } from '../errors.ts'
import { isMailAddress } from '../settings/mail-address.ts'
import type { CheckedStep, Log } from '../ports/index.ts'
import type { SettingsKeeper } from '../settings/settings.ts'
import type { AuditAction } from './audit.ts'
import type { AdminEndpoints, AdminRequest } from './router.ts'
import { settingsRefusals } from './settings.ts'
import { toExplanation, toReport } from './shapes.ts'

export interface AdminSupportParts {
  explain(link: string): Promise<LinkExplanation>
  examine(to?: string): Promise<CheckedStep<string>[]>
  settings: Pick<SettingsKeeper, 'reseal'>
  /** How many keys the ring has. */
  keyCount: number
  /** When the last live verification link expires; one of them may be signed with any key of the ring. */
  latestLinkExpiry(): Promise<Date | undefined>
  auditAction: AuditAction
  log: Log
}

/** What an admin asks at three in the morning: why does it not work, what is this link, are the keys in order. */
export function adminSupport(parts: AdminSupportParts) {
  const { auditAction, settings, keyCount } = parts
  // It is asked above all while something does not work.
  async function auditWherePossible(request: AdminRequest<'runDoctor'>) {
    try {
      await auditAction(request, 'doctor')
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error
      parts.log('error', 'a check was not recorded', { code: 'ERR_STORE_UNAVAILABLE' })
    }
  }

  return {
    async explainLink(request) {
      const explained = await parts.explain(request.body.link)
      await auditAction(request, 'link_explain', {
        ...(explained.token && { accountId: explained.token.userId }),
        details: { state: explained.state },
      })
      return { answer: toExplanation(explained) }
    },

    async runDoctor(request) {
      const { to } = request.body
      if (to !== undefined && !isMailAddress(to)) {
        const errors = [{ key: 'to', expected: 'one plain e-mail address', got: 'something else' }]
        const title = 'Nothing was checked: this is not an e-mail address.'
        return { status: 400, code: 'invalid_request', title, errors }
      }
      if (to !== undefined) await auditWherePossible(request)
      return { answer: toReport(await parts.examine(to)) }
    },

    async rotateKeys(request) {
      await auditAction(request, 'keys_rotate')
      const neededUntil = keyCount > 1 ? await parts.latestLinkExpiry() : undefined
      const outcome = await settings.reseal()
      if (outcome === 'unreadable') return settingsRefusals.unreadable
      return {
        answer: {
          ...outcome,
          keys: keyCount,
          ...(neededUntil && { old_keys_needed_until: neededUntil.toISOString() }),
        },
      }
    },
  } satisfies Partial<AdminEndpoints>
}
