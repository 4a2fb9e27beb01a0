import type { Context } from 'koa'
import type { PageLocals } from '../views/index.ts'
import { isPressed } from './browser.ts'
import { tokenInQuery, type SentForm } from './form.ts'
import type { HttpParts } from './parts.ts'

/** The same for every token that does nothing. */
const INVALID = { mode: 'invalid', reason: 'unknown' } as const

/** "This wasn't me" of any mail (4.10). Opening it does nothing, because programs that scan mails open links too. */
export function notMe({ notMe: flow, pages, requesterOf }: HttpParts) {
  function show(ctx: Context, locals: PageLocals['not-me'], uiLocales?: string) {
    pages.show(ctx, { name: 'not-me', locals, uiLocales })
  }

  return {
    async get(ctx: Context) {
      const token = tokenInQuery(ctx.querystring) ?? ''
      const mail = await flow.open(token)
      if (!mail) return show(ctx, INVALID)
      show(ctx, { mode: 'confirm', token }, mail.locale)
    },

    async post(ctx: Context, { fields, uiLocales: asked }: SentForm) {
      const token = fields.get('token') ?? ''
      const mail = await flow.open(token)
      if (!mail) return show(ctx, INVALID, asked)
      const uiLocales = asked ?? mail.locale
      if (!isPressed(ctx, fields))
        return show(ctx, { mode: 'confirm', token, isNotYet: true }, uiLocales)
      const done = await flow.report(mail, requesterOf(ctx.req))
      if (done === 'under_way') return pages.showError(ctx, 'unavailable')
      const { outcome: mode, mayReset } = done
      show(ctx, { mode, ...(mayReset && { carried: {} }) }, uiLocales)
    },
  }
}
