import type { Context } from 'koa'
import { errors, type Provider } from 'oidc-provider'
import type { AccountFlows } from '../../src/index.ts'
import { consentContent, grantConsent } from './consent.ts'
import { displayName, html } from './html.ts'
import type { Paths, ShowPage } from './page.ts'
import type { PasswordCheck } from './password-check.ts'
import { isCrossSite, readForm, type Route } from './requests.ts'

/** What was typed, and how long to wait where that was too often. */
interface Refused {
  username: string
  waitSeconds?: number
}

const MODES: Record<number, string> = { 401: 'refused', 429: 'too_many' }

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>

export interface LoginPageParts {
  flows: Pick<AccountFlows, 'loginStarted' | 'limitLogin' | 'finishLogin'>
  provider: Provider
  checkPassword: PasswordCheck
  show: ShowPage
  paths: Paths
}

/** The page at the provider's `interactions.url`, and the two forms on it. */
export function loginPage({ flows, provider, checkPassword, show, paths }: LoginPageParts) {
  const path = `${paths.oauth}/login`

  /** The interaction of this browser; where `uid` names another one, or there is none, a page says so. */
  async function interactionOf(ctx: Context, uid: string | undefined) {
    const interaction = await provider.interactionDetails(ctx.req, ctx.res).catch(ifNotFound)
    if (!interaction) return showStartAgain(ctx)
    if (uid === undefined || uid === interaction.uid) return interaction
    ctx.status = 409
    show(ctx, { name: 'login', mode: 'newer_tab', uiLocales: interaction.params['ui_locales'] })
    return undefined
  }

  function showStartAgain(ctx: Context): undefined {
    ctx.status = 400
    show(ctx, { name: 'login', mode: 'start_again' })
  }

  /** The flows and the provider write the answer; an interaction can still end while a password is checked. */
  async function leave(ctx: Context, finish: () => Promise<void>) {
    ctx.respond = false
    try {
      await finish()
    } catch (error) {
      ctx.respond = true
      ifNotFound(error)
      showStartAgain(ctx)
    }
  }

  async function showForm(ctx: Context, interaction: Interaction, refused?: Refused) {
    const { uid, params } = interaction
    const hint = typeof params['login_hint'] === 'string' ? params['login_hint'] : undefined
    const { username = hint, waitSeconds } = refused ?? {}
    ctx.status = refused ? 401 : 200
    if (waitSeconds !== undefined) {
      ctx.status = 429
      ctx.set('Retry-After', `${waitSeconds}`)
    }
    const minutes = `${Math.ceil((waitSeconds ?? 0) / 60)}`
    show(ctx, {
      name: 'login',
      mode: MODES[ctx.status] ?? 'form',
      values: { client: await clientName(params['client_id']), minutes },
      uiLocales: params['ui_locales'],
      formMayLeadTo: params['redirect_uri'],
      content: ({ t }) =>
        html`<form method="post" action="${path}">
            <input type="hidden" name="interaction" value="${uid}" />
            <label for="username">${t('forgot-password.identifier')}</label>
            <input
              id="username"
              name="username"
              value="${username}"
              autocomplete="username"
              autocapitalize="none"
              spellcheck="false"
              dir="auto"
              required
            />
            <label for="password">${t('login.password')}</label>
            <input
              id="password"
              type="password"
              name="password"
              autocomplete="current-password"
              required
            />
            <button type="submit">${t('login.title')}</button>
          </form>
          <p>
            <a href="${paths.oauth}/forgot-password${parametersQuery(params)}"
              >${t('login.forgot')}</a
            >
          </p>`,
    })
  }

  async function clientName(clientId: unknown): Promise<string> {
    const client = typeof clientId === 'string' ? await provider.Client.find(clientId) : undefined
    return displayName(client?.clientName ?? client?.clientId ?? 'the app')
  }

  async function showInteraction(ctx: Context) {
    const asked = ctx.query['interaction']
    const interaction = await interactionOf(ctx, typeof asked === 'string' ? asked : undefined)
    if (!interaction) return
    const { params, prompt } = interaction
    if (prompt.name === 'login') return showForm(ctx, interaction)
    show(ctx, {
      name: 'consent',
      mode: 'form',
      values: { client: await clientName(params['client_id']) },
      uiLocales: params['ui_locales'],
      formMayLeadTo: params['redirect_uri'],
      content: consentContent(interaction, `${path}/consent`),
    })
  }

  async function signIn(ctx: Context) {
    const startedAt = flows.loginStarted()
    const field = await readForm(ctx)
    const interaction = await interactionOf(ctx, field('interaction') ?? '')
    if (!interaction) return
    const username = field('username') ?? ''
    const waitSeconds = await flows.limitLogin(ctx.req, username)
    if (waitSeconds !== undefined) return showForm(ctx, interaction, { username, waitSeconds })
    const account = await checkPassword(username, field('password') ?? '', ctx.req)
    if (!account) return showForm(ctx, interaction, { username })
    await leave(ctx, () =>
      flows.finishLogin(ctx.req, ctx.res, { account, startedAt, amr: ['pwd'] }),
    )
  }

  async function answerConsent(ctx: Context) {
    const field = await readForm(ctx)
    const interaction = await interactionOf(ctx, field('interaction') ?? '')
    if (!interaction) return
    const result =
      field('decision') === 'allow' && interaction.prompt.name === 'consent'
        ? { consent: { grantId: await grantConsent(provider, interaction) } }
        : { error: 'access_denied', error_description: 'the user said no' }
    await leave(ctx, () => provider.interactionFinished(ctx.req, ctx.res, result))
  }

  /** Otherwise another site could sign somebody in to an account that is not theirs, or answer for them. */
  function fromOwnPage(post: (ctx: Context) => Promise<void>) {
    return async (ctx: Context) => {
      if (!isCrossSite(ctx, provider.issuer)) return post(ctx)
      ctx.status = 403
      show(ctx, { name: 'error', mode: 'refused' })
    }
  }

  return {
    [path]: { get: showInteraction, post: fromOwnPage(signIn) },
    // Below the login page, where the browser sends the cookie of the interaction.
    [`${path}/consent`]: { post: fromOwnPage(answerConsent) },
  } satisfies Record<string, Route>
}

/** Lets the user come back to the client after a password reset, and read everything in the language of the request. */
function parametersQuery(params: Interaction['params']): string {
  const query = new URLSearchParams()
  for (const name of ['client_id', 'redirect_uri', 'scope', 'state', 'ui_locales']) {
    const value = params[name]
    if (typeof value === 'string') query.set(name, value)
  }
  return query.size > 0 ? `?${query}` : ''
}

function ifNotFound(error: unknown): undefined {
  if (!(error instanceof errors.SessionNotFound)) throw error
}
