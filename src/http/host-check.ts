import type { Context } from 'koa'
import { within } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import type { BeforeForgotPassword, ForgotPasswordRequest } from '../ports/index.ts'
import { foldTyped } from '../ports/users.ts'
import type { HttpParts } from './parts.ts'

/** A form that the host is asked about. */
interface AskedForm extends ForgotPasswordRequest {
  /** Does what the form asks for. It is not called where the host denies that. */
  request: () => Promise<void>
  /** The random delay, which has begun. */
  waited: () => Promise<void>
}

export type HostCheck = ReturnType<typeof createHostCheck>

/**
 * Asks the host, does what the form asks for where that allows it, and waits. `false`: the check failed, and a page says so. Whoever is
 * denied is answered like everybody else.
 */
export function createHostCheck(parts: HttpParts, before: BeforeForgotPassword | undefined) {
  return async (ctx: Context, { request, waited, ...asked }: AskedForm): Promise<boolean> => {
    const verdict = before ? await verdictOf(parts, before, asked) : 'allow'
    if (verdict === 'allow') await request()
    await waited()
    if (verdict !== 'failed') return true
    parts.pages.showError(ctx, 'unavailable')
    return false
  }
}

/** `failed`: the check threw, or did not answer in time. */
async function verdictOf(
  { audit, keyedHash, clock, log }: HttpParts,
  before: BeforeForgotPassword,
  { fields: form, ...request }: ForgotPasswordRequest,
): Promise<'allow' | 'deny' | 'failed'> {
  const { kind, identifier, clientId, requester } = request
  const fields = new Map(form)
  fields.delete(kind === 'password_reset' ? 'identifier' : 'username')
  try {
    const asked = { ...request, requester: { ...requester }, fields }
    const verdict: unknown = await within(clock, CHECK_WITHIN_MS, before(asked))
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
    type: `${kind}_requested`,
    at: clock.now(),
    clientId: clientId?.slice(0, MAX_AUDITED_LENGTH),
    reason: 'denied',
    details: { identifier_hash: keyedHash(foldTyped(identifier)) },
    ...requester,
  })
  return 'deny'
}

const MAX_AUDITED_LENGTH = 256
const CHECK_WITHIN_MS = 10_000

function nameOf(error: unknown): string {
  try {
    return error instanceof Error ? error.name : typeof error
  } catch {
    // Reading what was thrown may throw too.
    return typeof error
  }
}
