import type { FlowParts } from '../flows/parts.ts'
import type {
  BeforeForgotPassword,
  ForgotPasswordRequest,
  MailKind,
  Requester,
} from '../contract/index.ts'
import { foldTyped } from '../contract/users.ts'
import { networkOf } from './requester.ts'
import type { Context } from 'koa'
import { within } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import { errorName } from '../errors.ts'
import type { SentForm } from './form.ts'
import type { HttpParts } from './parts.ts'

export type ResendCooldown = ReturnType<typeof createResendCooldown>

/**
 * For how many milliseconds another mail for the same name would be too soon, whether or not an account has the name. Counted by network.
 * Whether a mail is sent, a worker decides.
 */
export function createResendCooldown(parts: Pick<FlowParts, 'limits' | 'keyedHash' | 'settings'>) {
  const { limits, keyedHash, settings } = parts

  // By network: otherwise the countdown would show a stranger that another person asked for that name lately.
  const keyOf = (kind: MailKind, typed: string, requester: Requester) => {
    const name = foldTyped(typed)
    return `asked:${keyedHash(JSON.stringify([kind, name, networkOf(requester.address)]))}`
  }

  return {
    /** Counts a request that is not too soon. `undefined`: no cooldown is set. */
    async count(...request: Parameters<typeof keyOf>): Promise<number | undefined> {
      const { resendCooldown } = settings()
      if (resendCooldown === 0) return undefined
      const { count, msToEnd } = await limits.hit(keyOf(...request), resendCooldown, 0)
      return count === 1 ? resendCooldown : msToEnd
    },

    /** `undefined`: a mail may be asked for now. */
    async remaining(...request: Parameters<typeof keyOf>): Promise<number | undefined> {
      const { resendCooldown } = settings()
      if (resendCooldown === 0) return undefined
      const { msToEnd } = await limits.peek(keyOf(...request))
      return msToEnd > 0 ? Math.min(msToEnd, resendCooldown) : undefined
    },
  }
}

type Asked = Pick<ForgotPasswordRequest, 'kind' | 'identifier' | 'clientId'>

export type HostCheck = ReturnType<typeof createHostCheck>

/**
 * Runs the check of the host, then the request of the form if it is allowed, and waits for the random delay. A denied request gets the
 * same answer. `undefined`: the name is impossible or the check failed, and an error page is shown.
 */
export function createHostCheck(parts: HttpParts, before: BeforeForgotPassword | undefined) {
  const { pages, cooldown } = parts
  return async (ctx: Context, form: SentForm, asked: Asked, request: () => Promise<void>) => {
    const { kind, identifier } = asked
    const { requester, fields, randomDelay } = form
    if (identifier.includes('\0')) return pages.showError(ctx, 'bad_request')
    const waitMs = await cooldown.count(kind, identifier, requester)
    const verdict = before
      ? await verdictOf(parts, before, { ...asked, requester, fields })
      : 'allow'
    if (verdict === 'allow') await request()
    await randomDelay()
    if (verdict !== 'failed') return { waitMs }
    return pages.showError(ctx, 'unavailable')
  }
}

/** `failed`: the check threw, or did not answer in time. */
async function verdictOf(
  { audit, keyedHash, clock, log }: HttpParts,
  before: BeforeForgotPassword,
  request: ForgotPasswordRequest,
): Promise<'allow' | 'deny' | 'failed'> {
  const { kind, identifier, clientId, requester } = request
  const fields = new Map(request.fields)
  fields.delete(kind === 'password_reset' ? 'identifier' : 'username')
  try {
    const asked = { ...request, requester: { ...requester }, fields }
    const verdict: unknown = await within(clock, CHECK_WITHIN_MS, before(asked))
    if (verdict === 'allow') return 'allow'
    if (verdict === 'late') throw new DOMException('No answer in time', 'TimeoutError')
    if (verdict !== 'deny') log('error', 'beforeForgotPassword answered neither allow nor deny')
  } catch (error) {
    // Its message may quote what was typed.
    log('error', 'beforeForgotPassword failed', { error: errorName(error) })
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
