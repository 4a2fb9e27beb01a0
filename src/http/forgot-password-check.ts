import { within, type Clock } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import type { AuditEvent, CarriedParameters, Log, Requester } from '../ports/index.ts'
import type { Fields } from './form.ts'

/** A request for a reset link that was judged to be one, before anything is done for it. */
export interface ForgotPasswordRequest {
  /** As typed: anybody may have typed anything. */
  identifier: string
  /** As carried, not checked. `undefined`: none. */
  clientId: string | undefined
  requester: Requester
  /** All other fields of the form, such as the answer to a captcha. */
  fields: ReadonlyMap<string, string>
}

/** A check of the host's own, such as a captcha. Anything but `'allow'` is a denial. It has 10 seconds to answer. */
export type BeforeForgotPassword = (
  request: ForgotPasswordRequest,
) => 'allow' | 'deny' | Promise<'allow' | 'deny'>

/** `failed`: the check threw, or did not answer in time. */
export type ForgotPasswordVerdict = 'allow' | 'deny' | 'failed'

export interface ForgotPasswordCheckParts {
  before: BeforeForgotPassword | undefined
  audit(event: AuditEvent): Promise<void>
  /** Stands for an identifier in the audit log, and tells nothing about it. */
  keyedHash(identifier: string): string
  clock: Clock
  log: Log
}

export type ForgotPasswordCheck = (
  identifier: string,
  form: Fields,
  carried: CarriedParameters,
  requester: Requester,
) => Promise<ForgotPasswordVerdict>

export function createForgotPasswordCheck(parts: ForgotPasswordCheckParts): ForgotPasswordCheck {
  const { before, audit, keyedHash, clock, log } = parts
  return async (identifier, form, { clientId }, requester) => {
    if (!before) return 'allow'
    const fields = new Map(form)
    fields.delete('identifier')
    try {
      const verdict: unknown = await within(
        clock,
        CHECK_WITHIN_MS,
        Promise.resolve(before({ identifier, clientId, requester: { ...requester }, fields })),
      )
      if (verdict === 'allow') return 'allow'
      if (verdict === 'late') throw new DOMException('No answer in time', 'TimeoutError')
      if (verdict !== 'deny') log('error', 'beforeForgotPassword answered neither allow nor deny')
    } catch (error) {
      // Its message may quote what was typed.
      log('error', 'beforeForgotPassword failed', { error: nameOf(error) })
      return 'failed'
    }
    await audit({
      id: newId(),
      type: 'password_reset_requested',
      at: clock.now(),
      clientId: clientId?.slice(0, MAX_AUDITED_LENGTH),
      reason: 'denied',
      details: { identifier_hash: keyedHash(identifier) },
      ...requester,
    })
    return 'deny'
  }
}

const MAX_AUDITED_LENGTH = 256
const CHECK_WITHIN_MS = 10_000

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error
}
