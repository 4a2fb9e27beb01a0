import type { Context } from 'koa'
import { carriedFrom } from '../ports/carried-query.ts'
import { isId } from '../crypto/token.ts'
import type { LinkRefusal } from '../flows/link-refusal.ts'
import { formIdIn, readForm, uiLocalesIn, type Fields, linkInForm } from './form.ts'
import type { HostCheck } from './host-check.ts'
import { verifyEmailPages } from './verify-email-pages.ts'
import type { HttpParts } from './parts.ts'

/** The form that asks for another verification link (4.7). */
export function resendVerification(parts: HttpParts, check: HostCheck) {
  const { verification, clients, pages, startDelay, cooldown, requesterOf } = parts

  /** A page that waits goes on waiting, whatever name was typed. */
  async function answer(ctx: Context, form: Fields, { mode, uiLocales, ...sent }: Answer) {
    const login = form.get('login') ?? ''
    // Its form leads nowhere without the cookie of that login.
    const waiting = isId(login) ? login : undefined
    const carried = carriedFrom(form)
    const { scope: _scope, state: _state, ...named } = carried
    const { client } = await clients.identify(named)
    pages.show(ctx, {
      status: mode === 'sent' ? 200 : 400,
      name: 'verify-email',
      locals:
        mode === 'sent' ? { mode, waiting, client, ...sent } : { mode, waiting, client, carried },
      formMayLeadTo: waiting && client && carried.redirectUri,
      uiLocales,
      formId: formIdIn(form),
    })
  }

  /** A new link in the place of one that expired. It says whose it is, and nothing is typed. */
  async function renew(ctx: Context, form: Fields, token: string, waited: () => Promise<void>) {
    const link = linkInForm(form)
    const requester = { ...requesterOf(ctx.req), uiLocales: uiLocalesIn(form) }
    const outcome = link ? await verification.renew(link, requester, formIdIn(form)) : UNKNOWN
    const uiLocales = requester.uiLocales ?? outcome.locale
    if (outcome.refusal) {
      await waited()
      return verifyEmailPages(parts, uiLocales).expired(ctx, outcome)
    }
    const wish = { kind: 'email_verification', typed: token, requester } as const
    const waitMs = await cooldown.count(wish)
    await waited()
    return answer(ctx, form, { mode: 'sent', isRenewed: true, waitMs, uiLocales })
  }

  return {
    async post(ctx: Context) {
      const form = await readForm(ctx)
      const waited = startDelay()
      if (typeof form === 'string') return pages.showError(ctx, form)
      const username = form.get('username')
      const token = form.get('token')
      if (username === undefined && token !== undefined) return renew(ctx, form, token, waited)
      const uiLocales = uiLocalesIn(form)
      if (!username) return answer(ctx, form, { mode: 'invalid', uiLocales })
      if (username.includes('\0')) return pages.showError(ctx, 'bad_request')
      const requester = { ...requesterOf(ctx.req), uiLocales }
      const carried = carriedFrom(form)
      const kind = 'email_verification'
      const waitMs = await cooldown.count({ kind, typed: username, requester })
      const whose = (await ownLogin(parts, ctx, form)) ?? { identifier: username }
      const request = () => verification.resend(whose, carried, requester, formIdIn(form))
      const asked = { identifier: username, clientId: carried.clientId, requester, fields: form }
      if (!(await check(ctx, { kind, ...asked, request, waited }))) return
      await answer(ctx, form, { mode: 'sent', typed: username, waitMs, uiLocales })
    },
  }
}

/** The login that waits on the page of the form, if it is of the typed name: its mails have its code. */
async function ownLogin({ waitingLogins, browserCookie }: HttpParts, ctx: Context, form: Fields) {
  const pendingLoginId = form.get('login')
  if (pendingLoginId === undefined) return undefined
  const waiting = { pendingLoginId, browser: browserCookie.read(ctx.req) }
  const login = await waitingLogins.find(waiting)
  if (!('user' in login) || login.user.username !== form.get('username')) return undefined
  return { accountId: login.user.id, pendingLoginId }
}

const UNKNOWN: LinkRefusal = { refusal: 'expired', reason: 'unknown', carried: {} }

interface Answer {
  mode: 'sent' | 'invalid'
  isRenewed?: boolean
  typed?: string
  waitMs?: number | undefined
  uiLocales: string | undefined
}
