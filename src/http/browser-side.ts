import type { Core } from '../core.ts'
import type { Flows } from '../flows/flows.ts'
import { createInteractions } from '../oidc/interactions.ts'
import type { CheckedOptions } from '../check-options.ts'
import { createBrowserCookie } from './browser-cookie.ts'
import { forgotPassword } from './forgot-password.ts'
import { createHostCheck } from './host-check.ts'
import { createRequestLimit } from './request-limit.ts'
import { createResendCooldown } from './resend-cooldown.ts'
import { createLogin } from './login.ts'
import { createPages } from './pages.ts'
import { notMe } from './not-me.ts'
import type { HttpParts } from './parts.ts'
import { resendVerification } from './resend-verification.ts'
import { passwordPage } from './password-page.ts'
import { responseDelay } from './response-delay.ts'
import { asset, createRoutes, type Route } from './routes.ts'
import { verifyEmail } from './verify-email.ts'
import { waitingLogin } from './waiting-login.ts'

export type BrowserSide = ReturnType<typeof createBrowserSide>

/** All that browsers see of us: our routes, and the answers to the login page of the host. */
export function createBrowserSide(core: Core, flows: Flows, options: CheckedOptions) {
  const pages = createPages(core.views, options.captcha?.sources)
  const browserCookie = createBrowserCookie(options.baseUrl.protocol === 'https:')
  const parts: HttpParts = {
    ...core,
    ...flows,
    pages,
    browserCookie,
    cooldown: createResendCooldown(core),
    startDelay: responseDelay(core.clock, options.responseDelay),
    interactions: createInteractions(core.provider),
  }
  const routes = createRoutes({
    ...parts,
    routes: routesByPath(parts, options.beforeForgotPassword),
    oauthPath: options.oauthPath,
    limit: createRequestLimit(parts, options.trustedProxies),
  })
  return { routes, login: createLogin(parts), pages, browserCookie }
}

/** What browsers reach (4.1 to 4.4, 4.6, 4.7, 4.9, 4.10), by path below the OAuth path. */
function routesByPath(
  parts: HttpParts,
  before: CheckedOptions['beforeForgotPassword'],
): Record<string, Route> {
  const { views } = parts
  const check = createHostCheck(parts, before)
  return {
    '/forgot-password': forgotPassword(parts, check),
    '/reset-password': passwordPage(parts, 'reset-password'),
    '/accept-invitation': passwordPage(parts, 'accept-invitation'),
    '/verify-email': verifyEmail(parts),
    '/verify-email/waiting': waitingLogin(parts),
    '/not-me': notMe(parts),
    '/resend-verification': resendVerification(parts, check),
    '/account-flows.css': asset('text/css', views.stylesheet),
    '/account-flows.js': asset('text/javascript', views.script),
    '/account-flows.svg': asset('image/svg+xml', views.favicon),
  }
}
