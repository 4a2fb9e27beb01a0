import type { Middleware } from 'koa'
import { asset, createRoutes, type Route } from './routes.ts'
import {
  createForgotPasswordCheck,
  type BeforeForgotPassword,
  type ForgotPasswordCheckParts,
  forgotPassword,
  type ForgotPasswordParts,
} from './forgot-password.ts'
import { createRequestLimit, type RequestLimitParts } from './limits.ts'
import { responseDelay, type ResponseDelay } from './response-delay.ts'
import { resendVerification, type ResendVerificationParts } from './resend-verification.ts'
import { resetPassword, type ResetPasswordParts } from './reset-password.ts'
import type { Assets } from '../views/index.ts'
import { verifyEmail, type VerifyEmailParts } from './verify-email.ts'
import { waitingLogin, type WaitingLoginParts } from './waiting-login.ts'

interface RoutesParts
  extends
    Omit<ForgotPasswordParts, 'clients'>,
    Omit<ResetPasswordParts, 'passwordReset' | 'clients'>,
    Omit<ResendVerificationParts, 'verification' | 'clients'>,
    Omit<VerifyEmailParts, 'verification' | 'clients'>,
    Omit<WaitingLoginParts, 'clients'> {
  passwordReset: ForgotPasswordParts['passwordReset'] & ResetPasswordParts['passwordReset']
  verification: ResendVerificationParts['verification'] & VerifyEmailParts['verification']
  clients: ForgotPasswordParts['clients'] &
    ResetPasswordParts['clients'] &
    ResendVerificationParts['clients'] &
    VerifyEmailParts['clients'] &
    WaitingLoginParts['clients']
  assets: Assets
}

export interface BrowserRoutesParts
  extends
    Omit<RoutesParts, 'startDelay' | 'check'>,
    RequestLimitParts,
    Omit<ForgotPasswordCheckParts, 'before'> {
  /** Origin of the configured base URL. */
  origin: string
  options: { responseDelay: ResponseDelay; beforeForgotPassword?: BeforeForgotPassword | undefined }
}

/** All that browsers see of us. */
export function createBrowserRoutes(parts: BrowserRoutesParts): Middleware {
  const { responseDelay: delay, beforeForgotPassword: before } = parts.options
  const startDelay = responseDelay(parts.clock, delay)
  const check = createForgotPasswordCheck({ ...parts, before })
  const routes = routesByPath({ ...parts, startDelay, check })
  return createRoutes({ ...parts, routes, limit: createRequestLimit(parts) })
}

/** Sections 4.1 to 4.4, 4.6 and 4.7, by path below the OAuth path. */
function routesByPath(parts: RoutesParts): Record<string, Route> {
  const waiting = waitingLogin(parts)
  return {
    '/forgot-password': forgotPassword(parts),
    '/reset-password': resetPassword(parts),
    '/verify-email': verifyEmail(parts),
    '/verify-email/status': waiting.status,
    '/verify-email/waiting': waiting.window,
    '/resend-verification': resendVerification(parts),
    '/account-flows.css': asset('text/css', parts.assets.stylesheet),
    '/account-flows.js': asset('text/javascript', parts.assets.script),
  }
}
