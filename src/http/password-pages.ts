/** The pages on the way to a password: the form that asks for a reset link, and the forms that mailed links open. */
import type { Context } from 'koa'
import { parametersFrom } from '../contract/parameters.ts'
import type { RequestParameters, Log } from '../contract/index.ts'
import type { Flows } from '../flows/flows.ts'
import type { CompletedLink, RefusedLink } from '../flows/password-link.ts'
import type { LoginPage } from '../oidc/login-page-cookie.ts'
import type { PageName, ResetFaults, ResetFormMode } from '../views/index.ts'
import { parseFields, tokenInQuery, type SentForm } from './input.ts'
import type { Cooldown, MailForms } from './mail-forms.ts'
import type { Page, PageParts } from './pages.ts'
import type { Route } from './dispatcher.ts'

export interface PasswordPageParts extends PageParts, Pick<Flows, 'passwordReset' | 'invitation'> {
  cooldown: Cooldown
  mailForms: MailForms
  loginPage: Pick<LoginPage, 'addressFor'>
  log: Log
}

/** `sent`: the page that says that a new link was sent. */
const LINKS = {
  'reset-password': { flow: 'passwordReset', kind: 'password_reset', sent: 'forgot-password' },
  'accept-invitation': { flow: 'invitation', kind: 'invitation', sent: 'accept-invitation' },
} as const

type LinkPage = keyof typeof LINKS

/** The form that asks for a reset link (4.1, 4.2). */
export function forgotPassword(parts: PasswordPageParts): Route {
  const { clients, pages, mailForms } = parts
  const name = 'forgot-password'
  return {
    async get({ ctx }) {
      const parameters = parametersFrom(parseFields(ctx.querystring) ?? new Map<string, string>())
      await showOf(parts, ctx, parameters, { name, locals: { mode: 'form', parameters } })
    },

    tooMany: 'password_reset_requested',
    post: mailForms.form({
      kind: 'password_reset',
      renew: ({ ctx }, form) => renewLink(parts, ctx, 'reset-password', form),
      async show({ ctx }, { parameters, uiLocales, formId }, answer) {
        const genuine = await clients.identify(parameters)
        // If the client is not registered, only the form keeps these parameters.
        const again = answer.mode === 'invalid' ? { parameters } : undefined
        const locals = { ...genuine, ...again, ...answer }
        pages.show(ctx, { name, locals, uiLocales, formId: again && formId })
      },
    }),
  }
}

/** The form for a password, which the link of a reset (4.3, 4.4) or of an invitation (4.9) opens. */
export function passwordPage(parts: PasswordPageParts, name: LinkPage): Route {
  const { clients, pages, loginPage, mailForms, settings, log } = parts
  const { flow: flowName, kind, sent } = LINKS[name]
  const flow = parts[flowName]
  const renew = mailForms.delayed(({ ctx }, form) => renewLink(parts, ctx, name, form))

  async function showForm(
    ctx: Context,
    parameters: RequestParameters,
    form: { mode: ResetFormMode; token: string; isFirst: boolean | undefined } & ResetFaults,
    uiLocales: string | undefined,
  ) {
    const { minPasswordLength: minLength, maxPasswordLength: maxLength } = settings()
    const locals = { ...form, minLength, maxLength }
    await showOf(parts, ctx, parameters, { name, locals, uiLocales })
  }

  /** The password is set, so this shows the page even if it does not find the way on. */
  async function showDone(ctx: Context, done: CompletedLink, uiLocales: string | undefined) {
    const { parameters, apps, isFirst } = done
    const restart = async () =>
      clients.restart(parameters, await loginPage.addressFor(ctx, parameters))
    const client = await restart().catch((error: unknown) => {
      log('error', 'after a new password the way on is not known', { error: String(error) })
    })
    const locals = { mode: 'done', isFirst, ...(client && { client }), apps } as const
    pages.show(ctx, { name, locals, uiLocales })
  }

  return {
    async get({ ctx }) {
      const token = tokenInQuery(ctx.querystring) ?? ''
      const outcome = await flow.open(token)
      if ('fault' in outcome) return showInvalidLink(parts, ctx, name, outcome, token)
      const { parameters, locale, isFirst } = outcome
      await showForm(ctx, parameters, { mode: 'form', token, isFirst }, locale)
    },

    tooMany: `${kind}_rejected`,
    async post(visit, form) {
      const { ctx, requester } = visit
      const { fields, uiLocales } = form
      if (sent === name && fields.get('action') === 'renew') return renew(visit, form)
      const token = fields.get('token') ?? ''
      const password = fields.get('password') ?? ''
      const confirmPassword = fields.get('confirm_password') ?? ''
      const outcome = await flow.complete({ token, password, confirmPassword }, requester)
      if ('fault' in outcome) return showInvalidLink(parts, ctx, name, outcome, token, uiLocales)
      if (!('refusal' in outcome)) return showDone(ctx, outcome, uiLocales)
      const { parameters, refusal: mode, reason: hostReason, also, excess, isFirst } = outcome
      const refused = { mode, token, hostReason, also, excess, isFirst }
      await showForm(ctx, parameters, refused, uiLocales)
    },
  }
}

/** On the page of an expired link, one click sends a new one. */
async function showInvalidLink(
  parts: PasswordPageParts,
  ctx: Context,
  name: LinkPage,
  { fault: reason, parameters, locale, isFirst }: RefusedLink,
  token: string,
  uiLocales = locale,
) {
  const renew = reason === 'expired' ? token : undefined
  const locals = { mode: 'invalid', reason, parameters, renew, isFirst } as const
  await showOf(parts, ctx, parameters, { name, locals, uiLocales })
}

/** The old token identifies the account, so the user types no name. */
async function renewLink(
  parts: PasswordPageParts,
  ctx: Context,
  page: LinkPage,
  { fields, uiLocales: asked, formId, requester }: SentForm,
) {
  const { flow, kind, sent: name } = LINKS[page]
  const token = fields.get('token') ?? ''
  const outcome = await parts[flow].renew(token, requester, formId)
  if ('fault' in outcome) return showInvalidLink(parts, ctx, page, outcome, token, asked)
  const { parameters, locale } = outcome
  const waitMs = await parts.cooldown.count(kind, token, requester)
  const locals = { mode: 'sent', parameters, isRenewed: true, waitMs } as const
  await showOf(parts, ctx, parameters, { name, locals, uiLocales: asked ?? locale })
}

async function showOf<N extends PageName>(
  { clients, pages }: PasswordPageParts,
  ctx: Context,
  parameters: RequestParameters,
  page: Page<N>,
) {
  const { client } = await clients.identify(parameters)
  pages.show(ctx, { ...page, locals: { ...page.locals, client } })
}
