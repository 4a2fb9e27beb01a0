import type { Context } from 'koa'
import { carriedFrom } from '../ports/carried-query.ts'
import type { PasswordReset } from '../flows/password-reset.ts'
import type { Clients } from '../oidc/clients.ts'
import type { Requester } from '../ports/index.ts'
import { RETRY_AFTER_SECONDS } from './failure.ts'
import type { ForgotPasswordCheck } from './forgot-password-check.ts'
import { parseFields, readForm, uiLocalesIn } from './form.ts'
import type { Pages } from './pages.ts'
import type { ResendCooldown } from './resend-cooldown.ts'
import { showInvalidLink } from './reset-password.ts'
import type { StartDelay } from './response-delay.ts'

export interface ForgotPasswordParts {
  passwordReset: Pick<PasswordReset, 'request' | 'renew'>
  clients: Pick<Clients, 'shown'>
  check: ForgotPasswordCheck
  pages: Pages
  startDelay: StartDelay
  cooldown: ResendCooldown
  requesterOf(ctx: Context): Requester
}

/** 4.1 and 4.2. */
export function forgotPassword(parts: ForgotPasswordParts) {
  const { passwordReset, clients, check, pages, startDelay, cooldown, requesterOf } = parts
  const name = 'forgot-password'

  const showSent = (ctx: Context, waitMs: number | undefined, uiLocales: string | undefined) =>
    pages.show(ctx, { status: 200, name, locals: { mode: 'sent', waitMs }, uiLocales })

  /** A new link in the place of one that expired. Its token says whose it is, and nothing is typed. */
  async function renew(
    ctx: Context,
    token: string,
    requester: Requester,
    waited: () => Promise<void>,
  ) {
    const outcome = await passwordReset.renew(token, requester)
    const isRequested = outcome === 'requested'
    const waitMs = isRequested
      ? await cooldown.count({ kind: 'password_reset', typed: token, requester })
      : undefined
    await waited()
    if (isRequested) showSent(ctx, waitMs, requester.uiLocales)
    else showInvalidLink(pages, ctx, outcome, token)
  }

  return {
    async get(ctx: Context) {
      const fields = parseFields(ctx.querystring) ?? new Map<string, string>()
      const carried = carriedFrom(fields)
      const uiLocales = uiLocalesIn(fields)
      const client = await clients.shown(carried)
      const locals = { mode: 'form', carried, client, uiLocales } as const
      pages.show(ctx, { status: 200, name, locals, uiLocales })
    },

    async post(ctx: Context) {
      const form = await readForm(ctx)
      const waited = startDelay()
      if (typeof form === 'string') return pages.showError(ctx, form)
      const identifier = form.get('identifier')
      const token = form.get('token')
      const uiLocales = uiLocalesIn(form)
      const requester = { ...requesterOf(ctx), ...(uiLocales !== undefined && { uiLocales }) }
      if (identifier === undefined && token !== undefined) {
        return renew(ctx, token, requester, waited)
      }
      const carried = carriedFrom(form)
      if (!identifier) {
        const client = await clients.shown(carried)
        const locals = { mode: 'invalid', carried, client, uiLocales } as const
        return pages.show(ctx, { status: 400, name, locals, uiLocales })
      }
      if (identifier.includes('\0')) return pages.showError(ctx, 'bad_request')
      const waitMs = await cooldown.count({ kind: 'password_reset', typed: identifier, requester })
      const verdict = await check(identifier, form, carried, requester)
      if (verdict === 'allow') await passwordReset.request(identifier, carried, requester)
      await waited()
      if (verdict === 'failed') {
        ctx.set('Retry-After', RETRY_AFTER_SECONDS)
        return pages.showError(ctx, 'unavailable')
      }
      showSent(ctx, waitMs, uiLocales)
    },
  }
}
