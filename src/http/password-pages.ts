import type { Context } from 'koa'
import { carriedFrom } from '../contract/carried-query.ts'
import { parseFields, tokenInQuery, type SentForm } from './form.ts'
import type { HostCheck } from './mail-requests.ts'
import type { HttpParts } from './parts.ts'
import { newId } from '../crypto/token.ts'
import type { CompletedLink, RefusedLink } from '../flows/password-link.ts'
import type { CarriedParameters } from '../contract/index.ts'
import type { ResetFaults, ResetFormMode } from '../views/index.ts'

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

/** The pages with a form for a password: its flow, and the page that says that a new link was sent. */
const PASSWORD_PAGES = {
  'reset-password': { flow: 'passwordReset', kind: 'password_reset', sent: 'forgot-password' },
  'accept-invitation': { flow: 'invitation', kind: 'invitation', sent: 'accept-invitation' },
} as const

type PasswordPage = keyof typeof PASSWORD_PAGES

/** The form for a password, which the link of a reset (4.3, 4.4) or of an invitation (4.9) opens. */
export function passwordPage(parts: HttpParts, name: PasswordPage) {
  const { clients, pages, settings, requesterOf } = parts
  const { flow: flowName, sent } = PASSWORD_PAGES[name]
  const flow = parts[flowName]

  async function showForm(
    ctx: Context,
    carried: CarriedParameters,
    form: { mode: ResetFormMode; token: string } & ResetFaults,
    uiLocales: string | undefined,
  ) {
    const { client } = await clients.identify(carried)
    const { minPasswordLength: minLength, maxPasswordLength: maxLength } = settings()
    const locals = { ...form, minLength, maxLength, client }
    pages.show(ctx, { name, locals, uiLocales })
  }

  return {
    async get(ctx: Context) {
      const token = tokenInQuery(ctx.querystring) ?? ''
      const outcome = await flow.open(token)
      if ('fault' in outcome) return showInvalidLink(parts, ctx, name, outcome, token)
      await showForm(ctx, outcome.carried, { mode: 'form', token }, outcome.locale)
    },

    async post(ctx: Context, form: SentForm) {
      const { fields, uiLocales } = form
      if (sent === name && fields.get('action') === 'renew')
        return renewLink(parts, ctx, name, form)
      const token = fields.get('token') ?? ''
      const password = fields.get('password') ?? ''
      const confirmPassword = fields.get('confirm_password') ?? ''
      const outcome = await flow.complete(
        { token, password, confirmPassword },
        requesterOf(ctx.req),
      )
      if ('fault' in outcome) {
        const locale = uiLocales ?? outcome.locale
        return showInvalidLink(parts, ctx, name, { ...outcome, locale }, token)
      }
      const { carried } = outcome
      if ('refusal' in outcome) {
        const { refusal: mode, reason: hostReason, also, excess } = outcome
        return showForm(ctx, carried, { mode, token, hostReason, also, excess }, uiLocales)
      }
      await showDone(parts, ctx, name, outcome, uiLocales)
    },
  }
}

async function showDone(
  parts: HttpParts,
  ctx: Context,
  name: PasswordPage,
  { carried, apps }: CompletedLink,
  uiLocales: string | undefined,
) {
  const client = await nextStep(parts, ctx, carried)
  const locals = { mode: 'done', ...(client && { client }), apps } as const
  parts.pages.show(ctx, { name, locals, uiLocales })
}

// The password is changed, so the page is shown even if this fails.
async function nextStep(parts: HttpParts, ctx: Context, carried: CarriedParameters) {
  try {
    return await parts.clients.restart(carried, await parts.openLogin.pageFor(ctx, carried))
  } catch (error) {
    parts.log('error', 'after a new password the way on is not known', { error: String(error) })
    return undefined
  }
}

/** On the page of an expired link, one click sends a new one. */
async function showInvalidLink(
  { pages, clients }: HttpParts,
  ctx: Context,
  name: PasswordPage,
  { fault: reason, carried, locale: uiLocales }: RefusedLink,
  token: string,
): Promise<void> {
  const { client } = await clients.identify(carried)
  const renew = reason === 'expired' ? token : undefined
  const locals = { mode: 'invalid', reason, carried, client, renew } as const
  pages.show(ctx, { name, locals, uiLocales, formId: renew && newId() })
}

/** Sends a new link in place of an expired one. Its token identifies the account, so no name is typed. */
export async function renewLink(
  parts: HttpParts,
  ctx: Context,
  page: PasswordPage,
  { fields, uiLocales, formId, requester, randomDelay }: SentForm,
): Promise<void> {
  const { flow, kind, sent: name } = PASSWORD_PAGES[page]
  const token = fields.get('token') ?? ''
  const outcome = await parts[flow].renew(token, requester, formId)
  const locale = uiLocales ?? outcome.locale
  if ('fault' in outcome) {
    await randomDelay()
    return showInvalidLink(parts, ctx, page, { ...outcome, locale }, token)
  }
  const { carried } = outcome
  const waitMs = await parts.cooldown.count(kind, token, requester)
  await randomDelay()
  const { client } = await parts.clients.identify(carried)
  const locals = { mode: 'sent', carried, client, isRenewed: true, waitMs } as const
  parts.pages.show(ctx, { name, locals, uiLocales: locale })
}
