import type { Context } from 'koa'
import { formIdIn, readForm, uiLocalesIn } from './form.ts'
import type { HttpParts } from './parts.ts'
import { renewLink } from './renew-link.ts'
import { passwordPage } from './reset-password.ts'

/** The form for the first password, which an invitation opens (4.9). */
export function acceptInvitation(parts: HttpParts) {
  const { pages, startDelay, requesterOf } = parts
  const name = 'accept-invitation'
  const { get, post } = passwordPage(parts, name)
  return {
    get,

    async post(ctx: Context) {
      const form = await readForm(ctx)
      const waited = startDelay()
      if (typeof form === 'string') return pages.showError(ctx, form)
      if (form.get('action') !== 'renew') return post(ctx, form)
      const requester = { ...requesterOf(ctx.req), uiLocales: uiLocalesIn(form) }
      const wish = { token: form.get('token') ?? '', requester, form: formIdIn(form) }
      const sent = await renewLink(parts, ctx, name, wish, waited)
      if (!sent) return
      const { client, waitMs, uiLocales } = sent
      const locals = { mode: 'sent', client, waitMs } as const
      pages.show(ctx, { status: 200, name, locals, uiLocales })
    },
  }
}
