import type { Context } from 'koa'
import { carriedFrom } from '../carried-query.ts'
import type { PasswordReset } from '../flows/password-reset.ts'
import type { Requester } from '../ports.ts'
import { RETRY_AFTER_SECONDS } from './failure.ts'
import type { ForgotPasswordCheck } from './forgot-password-check.ts'
import { parseFields, readForm } from './form.ts'
import type { Pages } from './pages.ts'
import { showInvalidLink } from './reset-password.ts'
import { startDelay, type ResponseDelay } from './response-delay.ts'

export interface ForgotPasswordParts {
  passwordReset: Pick<PasswordReset, 'request' | 'renew'>
  check: ForgotPasswordCheck
  pages: Pages
  delay: ResponseDelay
  requesterOf(ctx: Context): Requester
}

/** 4.1 and 4.2. */
export function forgotPassword(parts: ForgotPasswordParts) {
  const { passwordReset, check, pages, delay, requesterOf } = parts

  const showSent = (ctx: Context) =>
    pages.show(ctx, { status: 200, name: 'forgot-password', locals: { mode: 'sent' } })

  return {
    async get(ctx: Context) {
      const carried = carriedFrom(parseFields(ctx.querystring) ?? new Map())
      pages.show(ctx, { status: 200, name: 'forgot-password', locals: { mode: 'form', carried } })
    },

    async post(ctx: Context) {
      const form = await readForm(ctx)
      const waited = startDelay(delay)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const identifier = form.get('identifier')
      const token = form.get('token')
      if (identifier === undefined && token !== undefined) {
        const outcome = await passwordReset.renew(token, requesterOf(ctx))
        await waited()
        if (outcome === 'requested') return showSent(ctx)
        return showInvalidLink(pages, ctx, outcome, token)
      }
      const carried = carriedFrom(form)
      if (!identifier) {
        return pages.show(ctx, {
          status: 400,
          name: 'forgot-password',
          locals: { mode: 'invalid', carried },
        })
      }
      if (identifier.includes('\0')) return pages.showError(ctx, 'bad_request')
      const requester = requesterOf(ctx)
      const verdict = await check(identifier, form, carried, requester)
      if (verdict === 'allow') await passwordReset.request(identifier, carried, requester)
      await waited()
      if (verdict === 'failed') {
        ctx.set('Retry-After', RETRY_AFTER_SECONDS)
        return pages.showError(ctx, 'unavailable')
      }
      showSent(ctx)
    },
  }
}
