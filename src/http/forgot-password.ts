import type { Context } from 'koa'
import { carriedFrom } from '../contract/requests.ts'
import { parseFields, type SentForm } from './form.ts'
import type { HostCheck } from './host-check.ts'
import { renewLink } from './password-page.ts'
import type { HttpParts } from './parts.ts'
import { newId } from '../crypto/token.ts'

/** The form that asks for a reset link (4.1, 4.2). */
export function forgotPassword(parts: HttpParts, check: HostCheck) {
  const { passwordReset, clients, pages } = parts
  const name = 'forgot-password'

  return {
    async get(ctx: Context) {
      const carried = carriedFrom(parseFields(ctx.querystring) ?? new Map<string, string>())
      const { client } = await clients.identify(carried)
      const locals = { mode: 'form', carried, client } as const
      pages.show(ctx, { name, locals, formId: newId() })
    },

    async post(ctx: Context, form: SentForm) {
      const { fields, uiLocales, formId, requester } = form
      const identifier = fields.get('identifier')
      if (identifier === undefined && fields.has('token'))
        return renewLink(parts, ctx, 'reset-password', form)
      const carried = carriedFrom(fields)
      const genuine = await clients.identify(carried)
      if (!identifier) {
        const locals = { mode: 'invalid', carried, client: genuine.client } as const
        return pages.show(ctx, { name, locals, uiLocales, formId })
      }
      const request = () => passwordReset.request(identifier, carried, requester, formId)
      const asked = { kind: 'password_reset', identifier, clientId: carried.clientId } as const
      const checked = await check(ctx, form, asked, request)
      if (!checked) return
      const locals = { mode: 'sent', ...genuine, typed: identifier, ...checked } as const
      pages.show(ctx, { name, locals, uiLocales })
    },
  }
}
