/** The paths that browsers reach, below the OAuth path (4.1 to 4.4, 4.6, 4.7, 4.9, 4.10). */
import type { Asset, Views } from '../views/index.ts'
import type { Route } from './dispatcher.ts'
import { notMe, type NotMeParts } from './not-me.ts'
import { forgotPassword, passwordPage, type PasswordPageParts } from './password-pages.ts'
import { resendVerification, verifyEmail, type VerifyEmailParts } from './verify-email.ts'
import { waitingLogin } from './waiting-login.ts'

export const createRoutes = (
  parts: PasswordPageParts & VerifyEmailParts & NotMeParts,
  { stylesheet, script, favicon }: Views,
) => ({
  '/forgot-password': forgotPassword(parts),
  '/reset-password': passwordPage(parts, 'reset-password'),
  '/accept-invitation': passwordPage(parts, 'accept-invitation'),
  '/verify-email': verifyEmail(parts),
  '/verify-email/waiting': waitingLogin(parts),
  '/resend-verification': resendVerification(parts),
  '/not-me': notMe(parts),
  '/account-flows.css': asset('text/css', stylesheet),
  '/account-flows.js': asset('text/javascript', script),
  '/account-flows.svg': asset('image/svg+xml', favicon),
})

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
