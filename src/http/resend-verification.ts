import type { Context } from 'koa'
import { carriedFrom } from '../carried-query.ts'
import type { EmailVerification } from '../flows/email-verification.ts'
import type { Requester } from '../ports.ts'
import { readForm } from './form.ts'
import type { Pages } from './pages.ts'
import { startDelay, type ResponseDelay } from './response-delay.ts'

export interface ResendVerificationParts {
  verification: Pick<EmailVerification, 'resend'>
  pages: Pages
  delay: ResponseDelay
  requesterOf(ctx: Context): Requester
}

/** 4.7. */
export function resendVerification(parts: ResendVerificationParts) {
  const { verification, pages, delay, requesterOf } = parts
  return {
    async post(ctx: Context) {
      const form = await readForm(ctx)
      const waited = startDelay(delay)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const username = form.get('username')
      if (!username || username.includes('\0')) return pages.showError(ctx, 'bad_request')
      await verification.resend(username, carriedFrom(form), requesterOf(ctx))
      await waited()
      pages.show(ctx, { status: 200, name: 'verify-email', locals: { mode: 'sent' } })
    },
  }
}
