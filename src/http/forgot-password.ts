import type { Context } from 'koa'
import { carriedFrom } from '../ports/carried-query.ts'
import type { Requester } from '../ports/index.ts'
import { formIdIn, parseFields, readForm, uiLocalesIn } from './form.ts'
import type { HostCheck } from './host-check.ts'
import { showInvalidLink } from './reset-password.ts'
import type { HttpParts } from './parts.ts'
import type { PageLocals } from '../views/index.ts'
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
      const token = form.get('token')
      const uiLocales = uiLocalesIn(form)
      const requester = { ...requesterOf(ctx.req), ...(uiLocales !== undefined && { uiLocales }) }
      if (identifier === undefined && token !== undefined) {
        return renew(parts, ctx, { token, requester, form: formIdIn(form) }, waited)
      }
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
      showSent(parts, ctx, { ...genuine, typed: identifier, waitMs }, uiLocales)
    },
  }
}

/** A new link in the place of one that expired. Its token says whose it is, and nothing is typed. */
async function renew(
  parts: HttpParts,
  ctx: Context,
  { token, requester, form }: { token: string; requester: Requester; form: string | undefined },
  waited: () => Promise<void>,
) {
  const outcome = await parts.passwordReset.renew(token, requester, form)
  const { carried, locale } = outcome
  const uiLocales = requester.uiLocales ?? locale
  if ('fault' in outcome) {
    await waited()
    return showInvalidLink(parts, ctx, outcome, token, uiLocales)
  }
  const waitMs = await parts.cooldown.count({ kind: 'password_reset', typed: token, requester })
  await waited()
  const { client } = await parts.clients.identify(carried)
  showSent(parts, ctx, { carried, client, isRenewed: true, waitMs }, uiLocales)
}

type Sent = Extract<PageLocals['forgot-password'], { mode: 'sent' }>

function showSent(
  { pages }: HttpParts,
  ctx: Context,
  sent: Omit<Sent, 'mode'>,
  uiLocales: string | undefined,
) {
  const locals = { mode: 'sent', ...sent } as const
  pages.show(ctx, { status: 200, name: 'forgot-password', locals, uiLocales })
}
