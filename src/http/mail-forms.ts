/** The forms that ask for a mail. All have the cooldown, the check of the host, and the random delay. */
import { randomInt } from 'node:crypto'
import { within } from '../clock.ts'
import { MAX_AUDITED_LENGTH } from '../contract/audit.ts'
import type {
  BeforeForgotPassword,
  ForgotPasswordRequest,
  MailKind,
  Requester,
} from '../contract/index.ts'
import { foldTyped } from '../contract/users.ts'
import { newId } from '../crypto/token.ts'
import { errorName } from '../errors.ts'
import type { CommonParts, FlowParts } from '../flows/parts.ts'
import { requestMail, type MailRequest } from '../flows/request-mail.ts'
import type { Settings } from '../settings/table.ts'
import type { RateLimits } from '../store/index.ts'
import type { SentForm } from './input.ts'
import type { Pages } from './pages.ts'
import { networkOf } from './requester.ts'
import type { Post, Visit } from './dispatcher.ts'

/** The random delay of answers, in milliseconds: from `floorMs` to `floorMs + jitterMs`. */
export interface ResponseDelay {
  floorMs: number
  jitterMs: number
}

interface MailFormParts extends CommonParts, Pick<FlowParts, 'mailQueue'> {
  pages: Pages
  cooldown: Cooldown
  keyedHash(text: string): string
  beforeForgotPassword?: BeforeForgotPassword | undefined
  responseDelay: ResponseDelay
}

export type MailForms = ReturnType<typeof createMailForms>

/** A form with a name, or with an expired link in its place. */
interface MailForm {
  kind: ForgotPasswordRequest['kind']
  renew: Post
  /** The account and the login of the mail. Left out, or `undefined`: the mail is for the typed name. */
  loginOf?(visit: Visit, form: SentForm): Promise<LoginOfMail | undefined>
  show(visit: Visit, form: SentForm, answer: Answer): Promise<void>
}

type LoginOfMail = Pick<MailRequest, 'accountId' | 'pendingLoginId'>

/** The field with the name. */
const FIELDS = { password_reset: 'identifier', email_verification: 'username' } as const

type Answer = { mode: 'invalid' } | { mode: 'sent'; typed: string; waitMs: number | undefined }

export function createMailForms(parts: MailFormParts) {
  const { pages, cooldown, responseDelay, clock } = parts
  const { floorMs, jitterMs } = responseDelay

  function delayed(answer: Post): Post {
    return async (visit, form) => {
      const jitter = jitterMs > 0 ? randomInt(jitterMs * 1000) / 1000 : 0
      // On a clock that is never set back.
      const until = performance.now() + floorMs + jitter
      await answer(visit, form)
      const rest = until - performance.now()
      if (rest > 0) await clock.sleep(rest)
    }
  }

  return {
    /** Answers after the random delay (4.2, 4.7). It begins when the form has been read: a slow body would use it up. */
    delayed,

    /** Counts the form, asks the host, and asks for the mail if the host allows it. A denied request gets the same answer. */
    form: ({ kind, renew, loginOf, show }: MailForm): Post =>
      delayed(async (visit, form) => {
        const { ctx } = visit
        const { fields, parameters, requester, formId } = form
        const identifier = fields.get(FIELDS[kind])
        if (identifier === undefined && fields.has('token')) return renew(visit, form)
        if (!identifier?.trim()) return show(visit, form, { mode: 'invalid' })
        if (identifier.includes('\0')) return pages.showError(ctx, 'bad_request')
        const waitMs = await cooldown.count(kind, identifier, requester)
        const { clientId } = parameters
        const verdict = await verdictOf(parts, { kind, identifier, clientId, requester, fields })
        if (verdict === 'failed') return pages.showError(ctx, 'unavailable')
        if (verdict === 'allow') {
          const whose = (await loginOf?.(visit, form)) ?? { identifier }
          await requestMail(parts, kind, { ...whose, parameters, requester, form: formId })
        }
        await show(visit, form, { mode: 'sent', typed: identifier, waitMs })
      }),
  }
}

export type Cooldown = ReturnType<typeof createCooldown>

// For how many milliseconds another mail for the same name would be too soon, with and without an account. A worker decides what is sent.
export function createCooldown(
  limits: RateLimits,
  keyedHash: (text: string) => string,
  settings: () => Settings,
) {
  // By network: otherwise the countdown would show a stranger that the user of that name asked lately.
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

const CHECK_WITHIN_MS = 10_000

/** `failed`: the check threw, or did not answer in time. */
async function verdictOf(
  { beforeForgotPassword, keyedHash, audit, clock, log }: MailFormParts,
  request: ForgotPasswordRequest,
): Promise<'allow' | 'deny' | 'failed'> {
  if (!beforeForgotPassword) return 'allow'
  const { kind, identifier, clientId, requester } = request
  const fields = new Map(request.fields)
  fields.delete(FIELDS[kind])
  try {
    const asked = { ...request, requester: { ...requester }, fields }
    const verdict: unknown = await within(clock, CHECK_WITHIN_MS, beforeForgotPassword(asked))
    if (verdict === 'allow') return 'allow'
    if (verdict === 'late') throw new DOMException('No answer in time', 'TimeoutError')
    if (verdict !== 'deny') log('error', 'beforeForgotPassword answered neither allow nor deny')
  } catch (error) {
    // Not the message: it may quote what the user typed.
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
