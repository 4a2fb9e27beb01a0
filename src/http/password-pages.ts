/** The pages on the way to a password: the form that asks for a reset link, and the forms that mailed links open. */
import type { Context } from 'koa'
import { parametersFrom } from '../contract/parameters.ts'
import type { RequestParameters, Log } from '../contract/index.ts'
import type { Flows } from '../flows/flows.ts'
import type { LinkContext } from '../flows/link-state.ts'
import type { CompletedLink, RefusedLink } from '../flows/password-link.ts'
import type { LoginPage } from '../oidc/login-page-cookie.ts'
import type { PageName, ResetFaults, ResetFormMode } from '../views/index.ts'
import { parseFields, tokenInQuery } from './input.ts'
import type { Cooldown, MailForms } from './mail-forms.ts'
import type { Page, PageParts } from './pages.ts'
import type { Post, Route } from './dispatcher.ts'

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
  const { renew } = linkOf(parts, 'reset-password')
  return {
    async get({ ctx }) {
      const parameters = parametersFrom(parseFields(ctx.querystring) ?? new Map<string, string>())
      await showOf(parts, ctx, parameters, { name, locals: { mode: 'form', parameters } })
    },

    tooMany: 'password_reset_requested',
    post: mailForms.form({
      kind: 'password_reset',
      renew,
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
  const { flow, kind, sent, showInvalid, renew } = linkOf(parts, name)
  const renewLater = mailForms.delayed(renew)

  async function showForm(
    ctx: Context,
    { parameters, isFirst }: LinkContext,
    form: { mode: ResetFormMode; token: string } & ResetFaults,
    uiLocales: string | undefined,
  ) {
    const { minPasswordLength: minLength, maxPasswordLength: maxLength } = settings()
    const locals = { ...form, isFirst, minLength, maxLength }
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
      if ('fault' in outcome) return showInvalid(ctx, outcome, token)
      await showForm(ctx, outcome, { mode: 'form', token }, outcome.locale)
    },

    tooMany: `${kind}_rejected`,
    async post(visit, form) {
      const { ctx, requester } = visit
      const { fields, uiLocales } = form
      if (sent === name && fields.get('action') === 'renew') return renewLater(visit, form)
      const token = fields.get('token') ?? ''
      const password = fields.get('password') ?? ''
      const confirmPassword = fields.get('confirm_password') ?? ''
      const outcome = await flow.complete({ token, password, confirmPassword }, requester)
      if ('fault' in outcome) return showInvalid(ctx, outcome, token, uiLocales)
      if (!('refusal' in outcome)) return showDone(ctx, outcome, uiLocales)
      const { refusal: mode, reason: hostReason, also, excess } = outcome
      await showForm(ctx, outcome, { mode, token, hostReason, also, excess }, uiLocales)
    },
  }
}

/** What pages do with a link that is opened: they say that it does nothing, or ask for another one in its place. */
function linkOf(parts: PasswordPageParts, name: LinkPage) {
  const { flow: flowName, kind, sent } = LINKS[name]
  const flow = parts[flowName]

  /** On the page of an expired link, one click sends a new one. */
  async function showInvalid(ctx: Context, link: RefusedLink, token: string, asked?: string) {
    const { fault: reason, parameters, locale, isFirst } = link
    const renew = reason === 'expired' ? token : undefined
    const locals = { mode: 'invalid', reason, parameters, renew, isFirst } as const
    await showOf(parts, ctx, parameters, { name, locals, uiLocales: asked ?? locale })
  }

  /** The old token identifies the account, so the user types no name. */
  const renew: Post = async ({ ctx }, { fields, uiLocales: asked, formId, requester }) => {
    const token = fields.get('token') ?? ''
    const outcome = await flow.renew(token, requester, formId)
    if ('fault' in outcome) return showInvalid(ctx, outcome, token, asked)
    const { parameters, locale } = outcome
    const waitMs = await parts.cooldown.count(kind, token, requester)
    const locals = { mode: 'sent', parameters, isRenewed: true, waitMs } as const
    await showOf(parts, ctx, parameters, { name: sent, locals, uiLocales: asked ?? locale })
  }

  return { flow, kind, sent, showInvalid, renew }
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
