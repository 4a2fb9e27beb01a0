/** What browsers see. This folder never knows how records are stored and mails are sent; of the provider, only what `oidc/` offers. */
import { createInteractions } from '../oidc/interactions.ts'
import type { CheckedOptions } from '../options.ts'
import type { Asset, Views } from '../views/index.ts'
import { createBrowserCookie } from './browser.ts'
import { createLogin, type LoginParts } from './login.ts'
import { createMailRequests, type MailRequestParts } from './mail-requests.ts'
import { notMe, type NotMeParts } from './not-me.ts'
import { createPages } from './pages.ts'
import { forgotPassword, passwordPage, type PasswordPageParts } from './password-pages.ts'
import { createDispatcher, type Route, type DispatcherParts } from './dispatcher.ts'
import { resendVerification, verifyEmail, type VerifyEmailParts } from './verify-email.ts'
import { waitingLogin } from './waiting-login.ts'

type AllParts = PasswordPageParts &
  VerifyEmailParts &
  NotMeParts &
  LoginParts &
  MailRequestParts &
  DispatcherParts

type MadeHere = 'pages' | 'browserCookie' | 'mailRequests' | 'interactions' | 'origin'

interface BrowserSideParts
  extends Omit<AllParts, MadeHere>, Pick<CheckedOptions, 'baseUrl' | 'captcha'> {
  views: Views
  provider: Parameters<typeof createInteractions>[0]
}

export function createBrowserSide(given: BrowserSideParts) {
  const { views, provider, captcha, log } = given
  const { origin, protocol } = given.baseUrl
  const pages = createPages(views, log, captcha?.sources)
  const browserCookie = createBrowserCookie(protocol === 'https:')
  const interactions = createInteractions(provider)
  const mailRequests = createMailRequests({ ...given, pages })
  const shared = { ...given, origin, pages, browserCookie, interactions, mailRequests }
  // The paths that browsers reach (4.1 to 4.4, 4.6, 4.7, 4.9, 4.10).
  const routes = {
    '/forgot-password': forgotPassword(shared),
    '/reset-password': passwordPage(shared, 'reset-password'),
    '/accept-invitation': passwordPage(shared, 'accept-invitation'),
    '/verify-email': verifyEmail(shared),
    '/verify-email/waiting': waitingLogin(shared),
    '/not-me': notMe(shared),
    '/resend-verification': resendVerification(shared),
    '/account-flows.css': asset('text/css', views.stylesheet),
    '/account-flows.js': asset('text/javascript', views.script),
    '/account-flows.svg': asset('image/svg+xml', views.favicon),
  }
  return {
    routes: createDispatcher(shared, routes),
    login: createLogin(shared),
    answerOutage: pages.showOutage,
    browserCookie,
  }
}

function asset(type: string, { text, version }: Asset): Route {
  return {
    async get({ ctx }) {
      // A page asks for the version that it was made with; another process, older or newer, may answer.
      const isVersion = ctx.querystring === `v=${version}`
      const kept = isVersion ? 'public, max-age=31536000, immutable' : 'no-cache'
      ctx.set({ 'Cache-Control': kept, 'X-Content-Type-Options': 'nosniff' })
      ctx.status = 200
      ctx.type = `${type}; charset=utf-8`
      ctx.etag = version
      if (ctx.fresh) ctx.status = 304
      else ctx.body = text
    },
  }
}
