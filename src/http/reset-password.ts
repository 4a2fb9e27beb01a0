import type { Context } from 'koa'
import { newId } from '../crypto/token.ts'
import type { CompletedLink, RefusedLink } from '../flows/password-link.ts'
import type { CarriedParameters } from '../ports/index.ts'
import type { ResetFaults, ResetFormMode } from '../views/index.ts'
import { type Fields, readForm, tokenInQuery, uiLocalesIn } from './form.ts'
import { forgetTries } from './login-password.ts'
import type { HttpParts } from './parts.ts'

/** The form for the new password, which the reset link opens (4.3, 4.4). */
export function resetPassword(parts: HttpParts) {
  const { get, post } = passwordPage(parts, 'reset-password')
  return {
    get,
    async post(ctx: Context) {
      const form = await readForm(ctx)
      return typeof form === 'string' ? parts.pages.showError(ctx, form) : post(ctx, form)
    },
  }
}

/** The pages with a form for a password, and the flow that each is of. */
export const PASSWORD_PAGES = {
  'reset-password': { flow: 'passwordReset', kind: 'password_reset' },
  'accept-invitation': { flow: 'invitation', kind: 'invitation' },
} as const

export type PasswordPage = keyof typeof PASSWORD_PAGES

export function passwordPage(parts: HttpParts, name: PasswordPage) {
  const { clients, pages, settings, requesterOf } = parts
  const flow = parts[PASSWORD_PAGES[name].flow]

  async function showForm(
    ctx: Context,
    carried: CarriedParameters,
    form: { mode: ResetFormMode; token: string } & ResetFaults,
    uiLocales: string | undefined,
  ) {
    const { client } = await clients.identify(carried)
    const { minPasswordLength: minLength, maxPasswordLength: maxLength } = settings()
    const locals = { ...form, minLength, maxLength, client }
    const status = form.mode === 'form' ? 200 : 400
    pages.show(ctx, { status, name, locals, uiLocales })
  }

  const showUnknown = (ctx: Context, uiLocales?: string) =>
    showInvalidLink(parts, ctx, name, { fault: 'unknown', carried: {} }, '', uiLocales)

  return {
    async get(ctx: Context) {
      const token = tokenInQuery(ctx.querystring)
      if (!token) return showUnknown(ctx)
      const outcome = await flow.open(token)
      if ('fault' in outcome)
        return showInvalidLink(parts, ctx, name, outcome, token, outcome.locale)
      await showForm(ctx, outcome.carried, { mode: 'form', token }, outcome.locale)
    },

    async post(ctx: Context, form: Fields) {
      const token = form.get('token')
      const uiLocales = uiLocalesIn(form)
      if (!token) return showUnknown(ctx, uiLocales)
      const password = form.get('password') ?? ''
      const confirmPassword = form.get('confirm_password') ?? ''
      const outcome = await flow.complete(
        { token, password, confirmPassword },
        requesterOf(ctx.req),
      )
      if ('fault' in outcome) {
        return showInvalidLink(parts, ctx, name, outcome, token, uiLocales ?? outcome.locale)
      }
      const { carried } = outcome
      if ('refusal' in outcome) {
        const { refusal: mode, reason: hostReason, also, excess } = outcome
        return showForm(ctx, carried, { mode, token, hostReason, also, excess }, uiLocales)
      }
      await forgetTries(parts, ctx.req, outcome.ended.accountId)
      await showDone(parts, ctx, name, outcome, uiLocales)
    },
  }
}

async function showDone(
  parts: HttpParts,
  ctx: Context,
  name: PasswordPage,
  { carried, ended: { accountId, endId } }: CompletedLink,
  uiLocales: string | undefined,
) {
  const [client, apps] = await Promise.all([
    wayOn(parts, ctx, carried),
    parts.appsOf(accountId, endId),
  ])
  const locals = { mode: 'done', ...(client && { client }), apps } as const
  parts.pages.show(ctx, { status: 200, name, locals, uiLocales })
}

// The password is changed: a failure here is no reason to say that something went wrong.
async function wayOn(
  { clients, openLogin, log }: HttpParts,
  ctx: Context,
  carried: CarriedParameters,
) {
  try {
    return await clients.restart(carried, await openLogin.pageFor(ctx, carried))
  } catch (error) {
    log('error', 'after a new password the way on is not known', { error: String(error) })
    return undefined
  }
}

/** A new link is one click away from one that expired. */
export async function showInvalidLink(
  { pages, clients }: HttpParts,
  ctx: Context,
  name: PasswordPage,
  { fault: reason, carried }: RefusedLink,
  token: string,
  uiLocales: string | undefined,
): Promise<void> {
  const { client } = await clients.identify(carried)
  const renew = reason === 'expired' ? token : undefined
  pages.show(ctx, {
    status: 400,
    name,
    locals: { mode: 'invalid', reason, carried, client, renew },
    uiLocales,
    formId: renew && newId(),
  })
}
