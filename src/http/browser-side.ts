import type { CheckedOptions } from '../options.ts'
import { asset } from './asset.ts'
import { createBrowserCookie } from './browser-cookie.ts'
import { unavailableAnswer } from './failure.ts'
import { forgotPassword } from './forgot-password.ts'
import { createHostCheck } from './host-check.ts'
import { createResendCooldown } from './resend-cooldown.ts'
import { createLogin } from './login.ts'
import { createPages } from './pages.ts'
import { notMe } from './not-me.ts'
import type { HttpParts } from './parts.ts'
import type { Views } from '../views/index.ts'
import { resendVerification } from './resend-verification.ts'
import { passwordPage } from './password-page.ts'
import { createRoutes } from './routes.ts'
import { verifyEmail } from './verify-email.ts'
import { waitingLogin } from './waiting-login.ts'

type Made = 'pages' | 'browserCookie' | 'cooldown' | 'origin'

interface Given extends Omit<HttpParts, Made> {
  views: Views
}

/** All that browsers see of us: our routes, and the answers to the login page of the host. */
export function createBrowserSide(given: Given, options: CheckedOptions) {
  const pages = createPages(given.views, options.captcha?.sources)
  const browserCookie = createBrowserCookie(options.baseUrl.protocol === 'https:')
  const parts: HttpParts = {
    ...given,
    origin: options.baseUrl.origin,
    pages,
    browserCookie,
    cooldown: createResendCooldown(given),
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
    '/account-flows.css': asset('text/css', given.views.stylesheet),
    '/account-flows.js': asset('text/javascript', given.views.script),
    '/account-flows.svg': asset('image/svg+xml', given.views.favicon),
  }
  return {
    routes: createRoutes(parts, routes, options),
    login: createLogin(parts),
    answerOutage: unavailableAnswer(pages, given.log),
    browserCookie,
  }
}
