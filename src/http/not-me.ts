import type { Context } from 'koa'
import type { NotMeToken } from '../records/index.ts'
import type { PageLocals } from '../views/index.ts'
import { isPressed } from './cross-site.ts'
import { readForm, tokenInQuery, uiLocalesIn } from './form.ts'
import type { HttpParts } from './parts.ts'

/** "This wasn't me" of any mail (4.10). Opening it does nothing, so it is safe from programs that look into mails. */
export function notMe({ notMe: flow, pages, requesterOf }: HttpParts) {
  function show(ctx: Context, status: number, locals: PageLocals['not-me'], uiLocales?: string) {
    pages.show(ctx, { status, name: 'not-me', locals, uiLocales })
  }

  // Of all tokens that do nothing, the page is the same.
  const showInvalid = (ctx: Context, uiLocales?: string) =>
    show(ctx, 400, { mode: 'invalid', reason: 'unknown' }, uiLocales)

  async function disown(ctx: Context, mail: NotMeToken, uiLocales: string) {
    const done = await flow.disown(mail, requesterOf(ctx.req))
    if (done === 'under_way') return pages.showError(ctx, 'unavailable')
    const { outcome: mode, mayReset } = done
    show(ctx, 200, { mode, ...(mayReset && { carried: {} }) }, uiLocales)
  }

  return {
    async get(ctx: Context) {
      const token = tokenInQuery(ctx.querystring) ?? ''
      const mail = await flow.open(token)
      if (!mail) return showInvalid(ctx)
      show(ctx, 200, { mode: 'confirm', token }, mail.locale)
    },

    async post(ctx: Context) {
      const form = await readForm(ctx)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const token = form.get('token') ?? ''
      const mail = await flow.open(token)
      if (!mail) return showInvalid(ctx, uiLocalesIn(form))
      const uiLocales = uiLocalesIn(form) ?? mail.locale
      if (isPressed(ctx, form)) return disown(ctx, mail, uiLocales)
      show(ctx, 400, { mode: 'confirm', token, isNotYet: true }, uiLocales)
    },
  }
}
