import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Context, Middleware } from 'koa'
import type { Provider } from 'oidc-provider'
import type { Log } from '../contract/index.ts'
import { AccountFlowsError, must, refuseWeak } from '../errors.ts'
import type { createEndableSessions } from './endable-sessions.ts'
import type { LoginPage } from './login-page-cookie.ts'
import type { createAccountPolicy } from './interactions.ts'
import { watchAnswers } from './provider-answers.ts'
import { restoreRequest } from './resume.ts'

const TOO_LATE =
  'Call flows.attach(provider) before provider.callback(), and before the provider is mounted: later, our pages are not found'
const ATTACHED =
  'flows.attach was called before: call it once. Another provider needs flows of its own, from createAccountFlows'

interface AttachedParts {
  sessions: ReturnType<typeof createEndableSessions>
  policy: ReturnType<typeof createAccountPolicy>
  loginPage: LoginPage
  routes: Middleware
  pages: { showOutage(ctx: Context, error: unknown): void }
  browserCookie: {
    read(req: IncomingMessage): string | undefined
    drop(res: ServerResponse): unknown
  }
  oauthUrl: string
  log: Log
}

export function createAttachment() {
  let attached: Provider | undefined
  return {
    provider(): Provider {
      if (attached) return attached
      throw new AccountFlowsError('ERR_NOT_ATTACHED', 'Call flows.attach(provider) first')
    },

    /** Adds our routes to a provider. @throws TypeError if the provider does not fit; the message says what to do. */
    attach(provider: Provider, parts: AttachedParts) {
      checkProvider(provider, parts)
      must(!attached, ATTACHED)
      attached = provider
      const { sessions, loginPage, routes, pages, browserCookie, log } = parts
      // Koa can mount the provider without a call of callback(). The first login shows whether our middleware runs.
      provider.once('interaction.started', () => {
        if (!sessions.passedOurMiddleware()) log('error', TOO_LATE)
      })
      watchAnswers(provider)
      provider.use(sessions.perRequest)
      provider.use(sessions.answeringOutages(pages.showOutage))
      provider.use(restoreRequest)
      provider.use(loginPage.watch)
      provider.use(routes)
      // Drops our cookie after a sign-out (RP-Initiated Logout). Without a session, the provider does not ask, so any site could cause it.
      provider.on('end_session.success', ({ req, res, oidc: { params, session } }) => {
        const isOut = params?.['logout'] && session?.accountId !== undefined
        if (isOut && browserCookie.read(req)) browserCookie.drop(res)
      })
    },
  }
}

function checkProvider(provider: Provider, parts: AttachedParts): void {
  const { sessions, policy, oauthUrl, log } = parts
  // Without types, a host may give its callback() or an app around it.
  const { Session }: { Session?: { adapter?: object } } = Object(provider)
  must(Session?.adapter, 'flows.attach takes the provider itself: flows.attach(new Provider(…))')
  sessions.expectOurs(Session.adapter)
  policy.expectMade()
  checkIssuer(provider, oauthUrl, log)
  // Koa adds this listener in callback().
  must(!provider.listeners('error').includes(provider.onerror), TOO_LATE)
}

function checkIssuer({ issuer }: Provider, oauthUrl: string, log: Log): void {
  const [given, wanted] = [new URL(issuer), new URL(oauthUrl)]
  if (given.origin !== wanted.origin) {
    refuseWeak(log)(
      `baseUrl must be at the address of the issuer: links in mails lead to ${oauthUrl}, and the issuer is ${issuer}`,
    )
  } else if (given.href !== wanted.href) {
    // Only a warning: an issuer without a path may have its endpoints below one.
    const message = 'the issuer of the provider should be baseUrl and oauthPath together'
    log('warn', message, { issuer, links: oauthUrl })
  }
}
