import type { Context } from 'koa'
import { carriedFrom } from '../ports/carried-query.ts'
import { isId } from '../crypto/token.ts'
import type { Settings } from '../settings/table.ts'
import type { WaitingPage } from '../views/index.ts'
import { readForm, uiLocalesIn, type Fields, linkInForm } from './form.ts'
import { verifyEmailPages } from './verify-email-pages.ts'
import type { HttpParts } from './parts.ts'

/** 4.7. */
export function resendVerification(parts: HttpParts) {
  const { verification, clients, pages, startDelay, cooldown, settings, requesterOf } = parts
  const show = verifyEmailPages(parts)

  /** Keeps the window waiting that asked, whatever name was typed. */
  async function answer(ctx: Context, form: Fields, mode: 'sent' | 'invalid', waitMs?: number) {
    const waiting = waitingPage(form, settings())
    const carried = carriedFrom(form)
    const { clientId, redirectUri } = carried
    const genuine =
      waiting && clientId !== undefined && redirectUri !== undefined
        ? await clients.genuine({ clientId, redirectUri })
        : {}
    pages.show(ctx, {
      status: mode === 'sent' ? 200 : 400,
      name: 'verify-email',
      locals: mode === 'sent' ? { mode, waiting, waitMs } : { mode, waiting, carried },
      formMayLeadTo: genuine.redirectUri,
      uiLocales: uiLocalesIn(form),
    })
  }

  /** A new link in the place of one that expired. It says whose it is, and nothing is typed. */
  async function renew(ctx: Context, form: Fields, waited: () => Promise<void>) {
    const link = linkInForm(form)
    const requester = { ...requesterOf(ctx.req), uiLocales: uiLocalesIn(form) }
    const outcome = link ? await verification.renew(link, requester) : UNKNOWN
    const waitMs =
      link && outcome === 'requested'
        ? await cooldown.count({ kind: 'email_verification', typed: link.token, requester })
        : undefined
    await waited()
    return outcome === 'requested' ? answer(ctx, form, 'sent', waitMs) : show.expired(ctx, outcome)
  }

  return {
    async post(ctx: Context) {
      const form = await readForm(ctx)
      const waited = startDelay()
      if (typeof form === 'string') return pages.showError(ctx, form)
      const username = form.get('username')
      if (username === undefined && form.has('token')) return renew(ctx, form, waited)
      if (!username) return answer(ctx, form, 'invalid')
      if (username.includes('\0')) return pages.showError(ctx, 'bad_request')
      const requester = { ...requesterOf(ctx.req), uiLocales: uiLocalesIn(form) }
      const waitMs = await cooldown.count({
        kind: 'email_verification',
        typed: username,
        requester,
      })
      await verification.resend(username, carriedFrom(form), requester)
      await waited()
      await answer(ctx, form, 'sent', waitMs)
    },
  }
}

const UNKNOWN = { reason: 'unknown', carried: {} } as const

// Whoever has not got the cookie of that login learns nothing from its id.
function waitingPage(
  form: Fields,
  { emailVerificationExpiration: forMs }: Settings,
): WaitingPage | undefined {
  const pendingLoginId = form.get('login')
  return pendingLoginId !== undefined && isId(pendingLoginId)
    ? { pendingLoginId, forMs }
    : undefined
}
