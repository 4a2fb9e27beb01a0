import type { Context } from 'koa'
import type { CarriedParameters } from '../contract/index.ts'
import { carriedFrom } from '../contract/carried-query.ts'
import { unknownLink } from '../flows/link-refusal.ts'
import type { Sent } from '../views/index.ts'
import { idIn, linkInForm, type SentForm } from './form.ts'
import type { HostCheck } from './mail-requests.ts'
import { verifyEmailPages } from './verify-email.ts'
import type { HttpParts } from './parts.ts'

/** The form that asks for another verification link (4.7). */
export function resendVerification(parts: HttpParts, check: HostCheck) {
  const { verification, clients, pages, cooldown } = parts

  /** The page of a waiting login remains one, whatever name was typed. */
  async function answer(ctx: Context, form: SentForm, answered: Answered) {
    // Without the cookie of that login, its form has no effect.
    const waiting = idIn(form.fields, 'login')
    const carried = carriedFrom(form.fields)
    const { scope: _scope, state: _state, ...named } = carried
    const { client } = await clients.identify(named)
    pages.show(ctx, {
      name: 'verify-email',
      locals: { waiting, client, ...answered },
      formMayLeadTo: waiting && client && carried.redirectUri,
      uiLocales: form.uiLocales,
      formId: form.formId,
    })
  }

  /** A new link in place of an expired one, which identifies the account, so no name is typed. */
  async function renew(ctx: Context, form: SentForm, token: string) {
    const { fields, formId, requester, randomDelay } = form
    const link = linkInForm(fields)
    const outcome = link ? await verification.renew(link, requester, formId) : unknownLink({})
    const uiLocales = form.uiLocales ?? outcome.locale
    if (outcome.refusal) {
      await randomDelay()
      return verifyEmailPages(parts).refused(ctx, { ...outcome, locale: uiLocales })
    }
    const waitMs = await cooldown.count('email_verification', token, requester)
    await randomDelay()
    return answer(ctx, { ...form, uiLocales }, { mode: 'sent', isRenewed: true, waitMs })
  }

  return {
    async post(ctx: Context, form: SentForm) {
      const { fields, formId, requester } = form
      const username = fields.get('username')
      const token = fields.get('token')
      const carried = carriedFrom(fields)
      if (username === undefined && token !== undefined) return renew(ctx, form, token)
      if (!username) return answer(ctx, form, { mode: 'invalid', carried })
      const whose = (await ownLogin(parts, ctx, form)) ?? { identifier: username }
      const request = () => verification.resend(whose, carried, requester, formId)
      const { clientId } = carried
      const asked = { kind: 'email_verification', identifier: username, clientId } as const
      const checked = await check(ctx, form, asked, request)
      if (checked) await answer(ctx, form, { mode: 'sent', typed: username, ...checked })
    },
  }
}

type Answered = Sent | { mode: 'invalid'; carried: CarriedParameters }

/** The login that waits on this page, if it has the typed name: the mail then has its code. */
async function ownLogin(parts: HttpParts, ctx: Context, { fields }: SentForm) {
  const pendingLoginId = fields.get('login')
  if (pendingLoginId === undefined) return undefined
  const waiting = { pendingLoginId, browser: parts.browserCookie.read(ctx.req) }
  const login = await parts.waitingLogins.find(waiting)
  if (!('user' in login) || login.user.username !== fields.get('username')) return undefined
  return { accountId: login.user.id, pendingLoginId }
}
