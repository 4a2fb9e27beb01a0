import type { Context } from 'koa'
import type { PasswordReset } from '../flows/password-reset.ts'
import type { Requester } from '../ports.ts'
import { carriedFrom, parseFields, readForm } from './form.ts'
import type { Pages } from './pages.ts'
import { startDelay, type ResponseDelay } from './response-delay.ts'

export interface ForgotPasswordParts {
  passwordReset: Pick<PasswordReset, 'request'>
  pages: Pages
  delay: ResponseDelay
  requesterOf(ctx: Context): Requester
}

/** 4.1 and 4.2. */
export function forgotPassword({ passwordReset, pages, delay, requesterOf }: ForgotPasswordParts) {
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
      const carried = carriedFrom(form)
      if (!identifier) {
        return pages.show(ctx, {
          status: 400,
          name: 'forgot-password',
          locals: { mode: 'invalid', carried },
        })
      }
      await passwordReset.request(identifier, carried, requesterOf(ctx))
      await waited()
      pages.show(ctx, { status: 200, name: 'forgot-password', locals: { mode: 'sent' } })
    },
  }
}
