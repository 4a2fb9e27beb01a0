import type { Core } from '../core.ts'
import type { Flows } from '../flows/flows.ts'
import { createInteractions } from '../oidc/interactions.ts'
import type { CheckedOptions } from '../options.ts'
import { asset } from './asset.ts'
import { createBrowserCookie } from './browser-cookie.ts'
import { forgotPassword } from './forgot-password.ts'
import { createHostCheck } from './host-check.ts'
import { createResendCooldown } from './resend-cooldown.ts'
import { createLogin } from './login.ts'
import { createPages } from './pages.ts'
import { notMe } from './not-me.ts'
import type { HttpParts } from './parts.ts'
import { resendVerification } from './resend-verification.ts'
import { passwordPage } from './password-page.ts'
import { createRoutes } from './routes.ts'
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
    interactions: createInteractions(core.provider),
  }
  const check = createHostCheck(parts, options.beforeForgotPassword)
  // What browsers reach (4.1 to 4.4, 4.6, 4.7, 4.9, 4.10).
  const routes = {
    '/forgot-password': forgotPassword(parts, check),
    '/reset-password': passwordPage(parts, 'reset-password'),
    '/accept-invitation': passwordPage(parts, 'accept-invitation'),
    '/verify-email': verifyEmail(parts),
    '/verify-email/waiting': waitingLogin(parts),
    '/not-me': notMe(parts),
    '/resend-verification': resendVerification(parts, check),
    '/account-flows.css': asset('text/css', core.views.stylesheet),
    '/account-flows.js': asset('text/javascript', core.views.script),
    '/account-flows.svg': asset('image/svg+xml', core.views.favicon),
  }
  return {
    routes: createRoutes(parts, routes, options),
    login: createLogin(parts),
    pages,
    browserCookie,
  }
}
