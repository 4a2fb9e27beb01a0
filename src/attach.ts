import type { Provider } from 'oidc-provider'
import type { Core } from './core.ts'
import type { BrowserSide } from './http/browser-side.ts'
import { unavailableAnswer } from './http/failure.ts'
import { checkProvider, sessionAdapterOf, tellWhereTooLate } from './oidc/check-provider.ts'
import { answeringOutages } from './oidc/outages.ts'
import { watchAnswers } from './oidc/provider-answers.ts'
import { restoreRequest } from './oidc/restore-request.ts'
import { onSignOut } from './oidc/sign-out.ts'

/** Adds our routes to a provider, once it is known to fit. */
export function attach(core: Core, browser: BrowserSide, provider: Provider) {
  const { sessions, policy, openLogin, oauthUrl, log } = core
  const { routes, pages, browserCookie } = browser
  sessions.expectOurs(sessionAdapterOf(provider))
  policy.expectMade()
  checkProvider(provider, oauthUrl, log)
  core.attach(provider)
  tellWhereTooLate(provider, log)
  provider.use(answeringOutages(unavailableAnswer(pages, log)))
  watchAnswers(provider)
  for (const ours of [restoreRequest, sessions.perRequest, openLogin.watch, routes]) {
    provider.use(ours)
  }
  onSignOut(provider, (req, res) => browserCookie.read(req) && browserCookie.drop(res))
}
