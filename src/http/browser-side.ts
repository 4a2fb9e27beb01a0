import type { Core } from '../core.ts'
import type { Flows } from '../flows/flows.ts'
import { createInteractions } from '../oidc/interactions.ts'
import type { CheckedOptions } from '../options.ts'
import { createBrowserCookie } from './browser.ts'
import { forgotPassword, passwordPage } from './password-pages.ts'
import { createHostCheck, createResendCooldown } from './mail-requests.ts'
import { createLogin } from './login.ts'
import { createPages } from './pages.ts'
import { notMe } from './not-me.ts'
import type { HttpParts } from './parts.ts'
import { resendVerification } from './resend-verification.ts'
import { createRoutes, type Route } from './routes.ts'
import { verifyEmail } from './verify-email.ts'
import { waitingLogin } from './waiting-login.ts'
import type { Asset } from '../views/index.ts'

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

/** A file that our pages load: the style sheet, the script or the icon. */
export function asset(type: string, { text, version }: Asset): Route {
  return {
    async get(ctx) {
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
