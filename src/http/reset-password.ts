import type { Context } from 'koa'
import type { PasswordReset } from '../flows/password-reset.ts'
import type { Clients } from '../oidc/clients.ts'
import type { Requester } from '../ports.ts'
import type { Settings } from '../settings/table.ts'
import type { ResetFormMode } from '../views.ts'
import { parseFields, readForm } from './form.ts'
import type { Pages } from './pages.ts'

export interface ResetPasswordParts {
  passwordReset: Pick<PasswordReset, 'isUsable' | 'complete'>
  clients: Pick<Clients, 'restart'>
  pages: Pages
  settings(): Settings
  requesterOf(ctx: Context): Requester
}

/** 4.3 and 4.4. */
export function resetPassword(parts: ResetPasswordParts) {
  const { passwordReset, clients, pages, settings, requesterOf } = parts

  function showForm(ctx: Context, status: number, mode: ResetFormMode, token: string) {
    const { minPasswordLength: minLength, maxPasswordLength: maxLength } = settings()
    const locals = { mode, token, minLength, maxLength }
    pages.show(ctx, { status, name: 'reset-password', locals })
  }

  const showInvalid = (ctx: Context) =>
    pages.show(ctx, {
      status: 400,
      name: 'reset-password',
      locals: { mode: 'invalid', reason: 'unknown' },
    })

  return {
    async get(ctx: Context) {
      const token = parseFields(ctx.querystring)?.get('token')
      if (!token || !(await passwordReset.isUsable(token))) return showInvalid(ctx)
      showForm(ctx, 200, 'form', token)
    },

    async post(ctx: Context) {
      const form = await readForm(ctx)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const token = form.get('token')
      if (!token) return showInvalid(ctx)
      const password = form.get('password') ?? ''
      const confirmPassword = form.get('confirm_password') ?? ''
      const outcome = await passwordReset.complete(
        { token, password, confirmPassword },
        requesterOf(ctx),
      )
      if (outcome === 'token_invalid') return showInvalid(ctx)
      if (typeof outcome === 'string') return showForm(ctx, 400, outcome, token)
      const client = await clients.restart(outcome.carried)
      pages.show(ctx, {
        status: 200,
        name: 'reset-password',
        locals: { mode: 'done', ...(client && { client }) },
      })
    },
  }
}
