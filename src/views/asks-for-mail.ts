import { maskedAddress } from '../settings/mail-address.ts'
import type { PageLocals, PageName } from './page-locals.ts'

/**
 * Whether the page has a form that names who is to get a link. A captcha is in these forms alone: the one click that replaces an expired
 * link is for whoever holds that.
 */
export function asksForMail(name: PageName, locals: PageLocals[PageName]): boolean {
  if (name === 'forgot-password') return locals.mode !== 'sent'
  if (name !== 'verify-email') return false
  if (locals.mode === 'blocked') return maskedAddress(locals.sentTo) !== undefined
  if (locals.mode === 'expired') return locals.renew === undefined
  return locals.mode === 'invalid'
}
