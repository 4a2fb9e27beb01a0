import type { Context } from 'koa'
import { carriedFrom } from '../ports/carried-query.ts'
import { formIdIn, parseFields, readForm, uiLocalesIn } from './form.ts'
import type { HostCheck } from './host-check.ts'
import { renewLink } from './password-page.ts'
import type { HttpParts } from './parts.ts'
import { newId } from '../crypto/token.ts'

/** The form that asks for a reset link (4.1, 4.2). */
export function forgotPassword(parts: HttpParts, check: HostCheck) {
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
      if (identifier === undefined && form.has('token'))
        return renewLink(parts, ctx, 'reset-password', form, waited)
      const uiLocales = uiLocalesIn(form)
      const requester = { ...requesterOf(ctx.req), uiLocales }
      const carried = carriedFrom(form)
      if (!identifier) {
        const { client } = await clients.identify(carried)
        const locals = { mode: 'invalid', carried, client } as const
        return pages.show(ctx, { status: 400, name, locals, uiLocales, formId: formIdIn(form) })
      }
      if (identifier.includes('\0')) return pages.showError(ctx, 'bad_request')
      const genuine = await clients.identify(carried)
      const kind = 'password_reset'
      const waitMs = await cooldown.count({ kind, typed: identifier, requester })
      const request = () => passwordReset.request(identifier, carried, requester, formIdIn(form))
      const asked = { identifier, clientId: carried.clientId, requester, fields: form }
      if (!(await check(ctx, { kind, ...asked, request, waited }))) return
      const locals = { mode: 'sent', ...genuine, typed: identifier, waitMs } as const
      pages.show(ctx, { status: 200, name, locals, uiLocales })
    },
  }
}
