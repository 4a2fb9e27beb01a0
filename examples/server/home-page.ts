import type { Context } from 'koa'
import type { Provider } from 'oidc-provider'
import { html, type Html } from './html.ts'
import type { Paths, ShowPage } from './page.ts'
import type { Route } from './requests.ts'
import type { Words } from './words.ts'

/** Of the users in `examples/seed.json`, which itself holds their hashes only. */
const DEMO_USERS = [
  { username: 'alice', password: 'alice-password', isConfirmed: true },
  { username: 'bob', password: 'bob-password', isConfirmed: false },
  { username: 'carol', password: 'carol-password', isConfirmed: true },
]

export interface HomePageParts {
  baseUrl: string
  /** Whether the shipped users are there, and nobody but a developer looks. */
  isDemo: boolean
  hasMailbox: boolean
  /** How a shell comes to the admin token. `undefined`: not every visitor may see it. */
  shellToken: string | undefined
  /** Whether bob has to wait: `require_email_verification` at the start. */
  requiresVerification: boolean
  provider: Provider
  show: ShowPage
  paths: Paths
}

export function homePage(parts: HomePageParts) {
  const { baseUrl, isDemo, hasMailbox, shellToken, requiresVerification } = parts
  const { provider, show, paths } = parts
  // So that the end of a reset leads back to the demo client.
  const ofDemoClient = new URLSearchParams({
    client_id: 'demo',
    redirect_uri: `${baseUrl}/demo/callback`,
  }).toString()

  function command({ t }: Words, why: string, words: string): Html | undefined {
    if (shellToken === undefined) return undefined
    return html`<p>${t(why)}</p>
      <pre dir="ltr" tabindex="0">
export ACCOUNT_FLOWS_URL=${baseUrl}
export ACCOUNT_FLOWS_TOKEN=${shellToken}
alias account-flows='npm run --silent cli --'
account-flows ${words}</pre>`
  }

  const toTry = (words: Words): Html => {
    const { t } = words
    return html`<h2>${t('home.try')}</h2>
      <ol>
        <li>
          <a href="${paths.oauth}/forgot-password?${ofDemoClient}">${t('home.reset')}</a>
          <p>${t('home.reset_how')}</p>
        </li>
        <li>
          <a href="${paths.base}/demo/start?prompt=login">${t('home.login')}</a>
          <p>${t('home.login_how')}</p>
          ${
            requiresVerification
              ? undefined
              : command(words, 'home.if_off', 'settings set require_email_verification true')
          }
        </li>
        ${
          shellToken &&
          html`<li>
            <b>${t('home.command')}</b>
            ${command(words, 'home.command_how', 'user status bob')}
          </li>`
        }
      </ol>`
  }

  async function get(ctx: Context) {
    const { accountId } = await provider.Session.get(ctx)
    const isSignedIn = accountId !== undefined
    show(ctx, {
      name: 'home',
      content: (words) => {
        const { t } = words
        return html`<p><a class="button" href="${paths.base}/demo/start">${t('home.start')}</a></p>
          ${
            hasMailbox
              ? html`<p><a href="${paths.base}/mailbox">${t('mailbox.title')}</a></p>`
              : undefined
          }
          ${
            isSignedIn
              ? html`<p>
                  <a href="${paths.base}/change-password">${t('change-password.title')}</a>
                </p>`
              : undefined
          }
          ${isDemo ? users(words) : undefined} ${isDemo ? toTry(words) : undefined}`
      },
    })
  }

  return { [`${paths.base}/`]: { get } } satisfies Record<string, Route>
}

function users({ t }: Words): Html {
  return html`<h2>${t('home.users')}</h2>
    <ul>
      ${DEMO_USERS.map(
        ({ username, password, isConfirmed }) =>
          html`<li>
            <b>${username}</b> · <code>${password}</code><br />
            ${t(isConfirmed ? 'home.confirmed' : 'home.unconfirmed')}
          </li>`,
      )}
    </ul>`
}
