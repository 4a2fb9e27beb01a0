import type { Provider } from 'oidc-provider'
import type { Core } from './core.ts'
import type { BrowserSide } from './http/browser-side.ts'
import { unavailableAnswer } from './http/failure.ts'
import { watchAnswers } from './oidc/provider-answers.ts'
import { restoreRequest } from './oidc/reenter.ts'
import type { Log } from './contract/index.ts'
import { must, refuseWeak } from './errors.ts'

const TOO_LATE =
  'Call flows.attach(provider) before provider.callback(), and before the provider is mounted: later, our pages are not found'

/** Adds our routes to a provider. @throws TypeError that says what to do if it does not fit. */
export function attach(core: Core, browser: BrowserSide, provider: Provider) {
  const { sessions, policy, openLogin, oauthUrl, log } = core
  const { routes, pages, browserCookie } = browser
  // Without types, a host may give its callback() or an app around it.
  const { Session }: { Session?: { adapter?: object } } = Object(provider)
  must(Session?.adapter, 'flows.attach takes the provider itself: flows.attach(new Provider(…))')
  sessions.expectOurs(Session.adapter)
  policy.expectMade()
  checkIssuer(provider, oauthUrl, log)
  // Koa adds this listener in callback().
  must(!provider.listeners('error').includes(provider.onerror), TOO_LATE)
  core.attach(provider)
  // Koa can mount it without a call of callback(). The first login shows that.
  provider.once('interaction.started', () => {
    if (!sessions.passedOurMiddleware()) log('error', TOO_LATE)
  })
  watchAnswers(provider)
  const outages = sessions.answeringOutages(unavailableAnswer(pages, log))
  for (const ours of [sessions.perRequest, outages, restoreRequest, openLogin.watch, routes]) {
    provider.use(ours)
  }
  // After a sign-out (RP-Initiated Logout). Without a session the provider does not ask, and any site could cause it.
  provider.on('end_session.success', ({ req, res, oidc: { params, session } }) => {
    const isOut = params?.['logout'] && session?.accountId !== undefined
    if (isOut && browserCookie.read(req)) browserCookie.drop(res)
  })
}

function checkIssuer({ issuer }: Provider, oauthUrl: string, log: Log): void {
  const [given, wanted] = [new URL(issuer), new URL(oauthUrl)]
  if (given.origin !== wanted.origin) {
    refuseWeak(log)(
      `baseUrl must be at the address of the issuer: links in mails lead to ${oauthUrl}, and the issuer is ${issuer}`,
    )
  } else if (given.href !== wanted.href) {
    // Not refused: an issuer without a path may have its endpoints below one.
    const message = 'the issuer of the provider should be baseUrl and oauthPath together'
    log('warn', message, { issuer, links: oauthUrl })
  }
}
