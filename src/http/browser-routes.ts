import { forgotPassword, type ForgotPasswordParts } from './forgot-password.ts'
import { resendVerification, type ResendVerificationParts } from './resend-verification.ts'
import { resetPassword, type ResetPasswordParts } from './reset-password.ts'
import type { Route } from './routes.ts'
import { stylesheet } from './stylesheet.ts'
import { verifyEmail, type VerifyEmailParts } from './verify-email.ts'

export interface BrowserRoutesParts
  extends
    ForgotPasswordParts,
    Omit<ResetPasswordParts, 'passwordReset' | 'clients'>,
    Omit<ResendVerificationParts, 'verification'>,
    Omit<VerifyEmailParts, 'verification' | 'clients'> {
  passwordReset: ForgotPasswordParts['passwordReset'] & ResetPasswordParts['passwordReset']
  verification: ResendVerificationParts['verification'] & VerifyEmailParts['verification']
  clients: ResetPasswordParts['clients'] & VerifyEmailParts['clients']
  stylesheet: string
}

/** Sections 4.1 to 4.4, 4.6 and 4.7, by path below the OAuth path. */
export function browserRoutes(parts: BrowserRoutesParts): Record<string, Route> {
  return {
    '/forgot-password': forgotPassword(parts),
    '/reset-password': resetPassword(parts),
    '/verify-email': verifyEmail(parts),
    '/resend-verification': resendVerification(parts),
    '/account-flows.css': stylesheet(parts.stylesheet),
  }
}
