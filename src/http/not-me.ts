import type { Context } from 'koa'
import type { Flows } from '../flows/flows.ts'
import type { PageLocals } from '../views/index.ts'
import { isPressed } from './browser.ts'
import { tokenInQuery } from './input.ts'
import type { PageParts } from './pages.ts'
import type { Route } from './dispatcher.ts'

export type NotMeParts = Pick<Flows, 'notMe'> & Pick<PageParts, 'pages'>

/** The page is the same for every token that does nothing. */
const INVALID = { mode: 'invalid', reason: 'unknown' } as const

/** "This wasn't me" of any mail (4.10). Opening it does nothing, because programs that scan mails open links too. */
export function notMe({ notMe: flow, pages }: NotMeParts): Route {
  function show(ctx: Context, locals: PageLocals['not-me'], uiLocales?: string) {
    pages.show(ctx, { name: 'not-me', locals, uiLocales })
  }

  return {
    async get({ ctx }) {
      const token = tokenInQuery(ctx.querystring) ?? ''
      const mail = await flow.open(token)
      if (!mail) return show(ctx, INVALID)
      show(ctx, { mode: 'confirm', token }, mail.locale)
    },

    tooMany: 'password_reset_rejected',
    async post({ ctx, requester }, { fields, uiLocales: asked }) {
      const token = fields.get('token') ?? ''
      const mail = await flow.open(token)
      if (!mail) return show(ctx, INVALID, asked)
      const uiLocales = asked ?? mail.locale
      if (!isPressed(ctx, fields))
        return show(ctx, { mode: 'confirm', token, isNotYet: true }, uiLocales)
      const done = await flow.report(mail, requester)
      if (done === 'under_way') return pages.showError(ctx, 'unavailable')
      const { outcome: mode, mayReset } = done
      show(ctx, { mode, ...(mayReset && { parameters: {} }) }, uiLocales)
    },
  }
}
