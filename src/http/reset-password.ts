import type { Context } from 'koa'
import type { LinkFault } from '../flows/link.ts'
import type { ResetFormMode } from '../views/index.ts'
import { readForm, tokenInQuery } from './form.ts'
import type { Pages } from './pages.ts'
import type { HttpParts } from './parts.ts'

/** 4.3 and 4.4. */
export function resetPassword(parts: HttpParts) {
  const { passwordReset, clients, openLogin, pages, settings, requesterOf } = parts

  function showForm(ctx: Context, status: number, mode: ResetFormMode, token: string) {
    const { minPasswordLength: minLength, maxPasswordLength: maxLength } = settings()
    const locals = { mode, token, minLength, maxLength }
    pages.show(ctx, { status, name: 'reset-password', locals })
  }

  const showUnknown = (ctx: Context) => showInvalidLink(pages, ctx, { fault: 'unknown' }, '')

  return {
    async get(ctx: Context) {
      const token = tokenInQuery(ctx.querystring)
      if (!token) return showUnknown(ctx)
      const outcome = await passwordReset.open(token)
      if (outcome !== 'usable') return showInvalidLink(pages, ctx, outcome, token)
      showForm(ctx, 200, 'form', token)
    },

    async post(ctx: Context) {
      const form = await readForm(ctx)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const token = form.get('token')
      if (!token) return showUnknown(ctx)
      const password = form.get('password') ?? ''
      const confirmPassword = form.get('confirm_password') ?? ''
      const outcome = await passwordReset.complete(
        { token, password, confirmPassword },
        requesterOf(ctx.req),
      )
      if ('fault' in outcome) return showInvalidLink(pages, ctx, outcome, token)
      if ('refusal' in outcome) return showForm(ctx, 400, outcome.refusal, token)
      const { carried } = outcome
      const client = await clients.restart(carried, await openLogin.pageFor(ctx, carried))
      pages.show(ctx, {
        status: 200,
        name: 'reset-password',
        locals: { mode: 'done', ...(client && { client }) },
      })
    },
  }
}

/** A new link is one click away from one that expired. */
export function showInvalidLink(
  pages: Pages,
  ctx: Context,
  { fault: reason }: { fault: LinkFault },
  token: string,
): void {
  const renew = reason === 'expired' ? token : undefined
  pages.show(ctx, {
    status: 400,
    name: 'reset-password',
    locals: { mode: 'invalid', reason, renew },
  })
}
