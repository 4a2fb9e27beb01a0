import type { Context } from 'koa'
import type { PasswordReset } from '../flows/password-reset.ts'
import type { Log, Requester } from '../ports.ts'
import { showUnavailable } from './failure.ts'
import { carriedFrom, parseFields, readForm } from './form.ts'
import type { Pages } from './pages.ts'
import { startDelay, type ResponseDelay } from './response-delay.ts'

/** A request for a reset link, before anything is done with it. */
export interface ForgotPasswordRequest {
  /** As typed. Nobody knows yet whether it belongs to an account. */
  identifier: string
  /** As sent; it may name no client. */
  clientId: string | undefined
  requester: Requester
  /** All fields of the form, such as the answer to a captcha. */
  fields: ReadonlyMap<string, string>
}

/**
 * Judges a request for a reset link. Anything but `allow` is a denial: nothing is sent, and the answer is the same page. Where it
 * throws, everybody is told to try again later (503).
 */
export type BeforeForgotPassword = (
  request: ForgotPasswordRequest,
) => 'allow' | 'deny' | Promise<'allow' | 'deny'>

export interface ForgotPasswordParts {
  passwordReset: Pick<PasswordReset, 'request' | 'deny'>
  pages: Pages
  delay: ResponseDelay
  requesterOf(ctx: Context): Requester
  beforeForgotPassword: BeforeForgotPassword
  log: Log
}

/** 4.1 and 4.2. */
export function forgotPassword(parts: ForgotPasswordParts) {
  const { passwordReset, pages, delay, requesterOf, beforeForgotPassword, log } = parts

  async function isAllowed(request: ForgotPasswordRequest) {
    try {
      return (await beforeForgotPassword(request)) === 'allow'
    } catch (error) {
      // Its message may quote what was typed.
      const name = error instanceof Error ? error.name : typeof error
      log('error', 'beforeForgotPassword failed', { error: name })
      return 'failed'
    }
  }

  return {
    async get(ctx: Context) {
      const carried = carriedFrom(parseFields(ctx.querystring) ?? new Map())
      pages.show(ctx, { status: 200, name: 'forgot-password', locals: { mode: 'form', carried } })
    },

    async post(ctx: Context) {
      const form = await readForm(ctx)
      const waited = startDelay(delay)
      if (typeof form === 'string') return pages.showError(ctx, form)
      const identifier = form.get('identifier')
      const carried = carriedFrom(form)
      if (!identifier) {
        return pages.show(ctx, {
          status: 400,
          name: 'forgot-password',
          locals: { mode: 'invalid', carried },
        })
      }
      const requester = requesterOf(ctx)
      const { clientId } = carried
      const verdict = await isAllowed({ identifier, clientId, requester, fields: form })
      if (verdict === 'failed') return showUnavailable(ctx, pages)
      if (verdict) await passwordReset.request(identifier, carried, requester)
      else await passwordReset.deny(carried, requester)
      await waited()
      pages.show(ctx, { status: 200, name: 'forgot-password', locals: { mode: 'sent' } })
    },
  }
}
