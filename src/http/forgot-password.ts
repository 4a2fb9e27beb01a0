import type { Context } from 'koa'
import { carriedFrom } from '../ports/carried-query.ts'
import type { Requester } from '../ports/index.ts'
import { foldTyped } from '../ports/users.ts'
import { RETRY_AFTER_SECONDS } from './failure.ts'
import { formIdIn, parseFields, readForm, uiLocalesIn } from './form.ts'
import { showInvalidLink } from './reset-password.ts'
import type { HttpParts } from './parts.ts'
import type { PageLocals } from '../views/index.ts'
import { within } from '../clock.ts'
import { newId } from '../crypto/token.ts'

/** The form that asks for a reset link (4.1, 4.2). */
export function forgotPassword(parts: HttpParts, before: BeforeForgotPassword | undefined) {
  const { passwordReset, clients, pages, startDelay, cooldown, requesterOf } = parts
  const name = 'forgot-password'

  return {
    async get(ctx: Context) {
      const fields = parseFields(ctx.querystring) ?? new Map<string, string>()
      const carried = carriedFrom(fields)
      const { client } = await clients.identify(carried)
      const locals = { mode: 'form', carried, client } as const
      pages.show(ctx, { status: 200, name, locals, formId: newId() })
    },

    async post(ctx: Context) {
      const form = await readForm(ctx)
      const waited = startDelay()
      if (typeof form === 'string') return pages.showError(ctx, form)
      const identifier = form.get('identifier')
      const token = form.get('token')
      const uiLocales = uiLocalesIn(form)
      const requester = { ...requesterOf(ctx.req), ...(uiLocales !== undefined && { uiLocales }) }
      if (identifier === undefined && token !== undefined) {
        return renew(parts, ctx, { token, requester, form: formIdIn(form) }, waited)
      }
      const carried = carriedFrom(form)
      if (!identifier) {
        const { client } = await clients.identify(carried)
        const locals = { mode: 'invalid', carried, client } as const
        return pages.show(ctx, { status: 400, name, locals, uiLocales, formId: formIdIn(form) })
      }
      if (identifier.includes('\0')) return pages.showError(ctx, 'bad_request')
      const genuine = await clients.identify(carried)
      const waitMs = await cooldown.count({ kind: 'password_reset', typed: identifier, requester })
      const asked = { identifier, clientId: carried.clientId, requester, fields: form }
      const verdict = await verdictOf(parts, before, asked)
      if (verdict === 'allow') {
        await passwordReset.request(identifier, carried, requester, formIdIn(form))
      }
      await waited()
      if (verdict === 'failed') {
        ctx.set('Retry-After', RETRY_AFTER_SECONDS)
        return pages.showError(ctx, 'unavailable')
      }
      showSent(parts, ctx, { ...genuine, typed: identifier, waitMs }, uiLocales)
    },
  }
}

/** A new link in the place of one that expired. Its token says whose it is, and nothing is typed. */
async function renew(
  parts: HttpParts,
  ctx: Context,
  { token, requester, form }: { token: string; requester: Requester; form: string | undefined },
  waited: () => Promise<void>,
) {
  const outcome = await parts.passwordReset.renew(token, requester, form)
  const { carried, locale } = outcome
  const uiLocales = requester.uiLocales ?? locale
  if ('fault' in outcome) {
    await waited()
    return showInvalidLink(parts, ctx, outcome, token, uiLocales)
  }
  const waitMs = await parts.cooldown.count({ kind: 'password_reset', typed: token, requester })
  await waited()
  const { client } = await parts.clients.identify(carried)
  showSent(parts, ctx, { carried, client, isRenewed: true, waitMs }, uiLocales)
}

type Sent = Extract<PageLocals['forgot-password'], { mode: 'sent' }>

function showSent(
  { pages }: HttpParts,
  ctx: Context,
  sent: Omit<Sent, 'mode'>,
  uiLocales: string | undefined,
) {
  const locals = { mode: 'sent', ...sent } as const
  pages.show(ctx, { status: 200, name: 'forgot-password', locals, uiLocales })
}

/** A request for a reset link that was judged to be one, before anything is done for it. */
export interface ForgotPasswordRequest {
  /** As typed; it can be any text. */
  identifier: string
  /** As sent, not checked. `undefined`: none. */
  clientId: string | undefined
  requester: Requester
  /** All other fields of the form, such as the answer to a captcha. */
  fields: ReadonlyMap<string, string>
}

/** Your own check, such as a captcha. Every answer except `'allow'` denies. It has 10 seconds. */
export type BeforeForgotPassword = (
  request: ForgotPasswordRequest,
) => 'allow' | 'deny' | Promise<'allow' | 'deny'>

/** `failed`: the check threw, or did not answer in time. */
async function verdictOf(
  { audit, keyedHash, clock, log }: HttpParts,
  before: BeforeForgotPassword | undefined,
  { fields: form, ...request }: ForgotPasswordRequest,
): Promise<'allow' | 'deny' | 'failed'> {
  if (!before) return 'allow'
  const { identifier, clientId, requester } = request
  const fields = new Map(form)
  fields.delete('identifier')
  try {
    const verdict: unknown = await within(
      clock,
      CHECK_WITHIN_MS,
      Promise.resolve(before({ ...request, requester: { ...requester }, fields })),
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
    details: { identifier_hash: keyedHash(foldTyped(identifier)) },
    ...requester,
  })
  return 'deny'
}

const MAX_AUDITED_LENGTH = 256
const CHECK_WITHIN_MS = 10_000

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error
}
