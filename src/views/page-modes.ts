/** Status, title, picture, captcha and errors at fields: they follow from the name of a page, its mode, reason and fault. */
import { maskedAddress } from '../settings/addresses.ts'
import type { Catalog, Values } from './catalog.ts'
import { wordsIn } from './languages.ts'
import { ERROR_STATUS, type PageLocals, type PageName } from './page-locals.ts'
import { numberText, waitText } from './wording.ts'

/** 400 where the page refuses something. */
export function statusOf(locals: PageLocals[PageName]): number {
  // No browser keeps the page of a link that it fetched ahead.
  if ('link' in locals) return 403
  const isFaulty = 'fault' in locals && locals.fault && locals.fault.reason !== 'not_yet'
  if (isFaulty || ('isNotYet' in locals && locals.isNotYet)) return 400
  const ofErrors: Record<string, number> = ERROR_STATUS
  return ofErrors[locals.mode] ?? (REFUSING.test(locals.mode) ? 400 : 200)
}

const REFUSING = /^(invalid|expired|ended|password_.*)$/

/** Keys of the title, the most special first. */
export function titlesOf(name: PageName, locals: PageLocals[PageName]): string[] {
  const { mode } = locals
  if (mode === 'elsewhere' && !locals.code) return [`${name}.elsewhere.over.title`]
  if (!('reason' in locals)) return [`${name}.${mode}.title`]
  return [name, 'reset-password'].map((each) => `${each}.${mode}.${locals.reason}.title`)
}

/** `undefined`: there is a form to fill in. */
export function stateIcon(name: PageName, locals: PageLocals[PageName]): string | undefined {
  const what = 'reason' in locals ? locals.reason : locals.mode
  if (name === 'verify-email' && what === 'used') return 'good'
  const [icon] = ICONS.find(([, all]) => all.test(what)) ?? []
  return icon ?? ('reason' in locals || name === 'error' ? 'bad' : undefined)
}

const ICONS: readonly (readonly [icon: string, of: RegExp])[] = [
  ['mail', /^(sent|confirm|elsewhere|superseded)$/],
  ['good', /^(done|stopped|secured|unverified|signed_out|verified|signed_in)$/],
  ['late', /^(later|ended|expired)$/],
  ['who', /^other_account$/],
]

/** Whether the page has a form with a name that gets a link. Only these forms have a captcha, not the one click that replaces a link. */
export function asksForMail(name: PageName, locals: PageLocals[PageName]): boolean {
  if (name === 'forgot-password') return locals.mode !== 'sent'
  if (name !== 'verify-email') return false
  if (locals.mode === 'blocked') return maskedAddress(locals.sentTo) !== undefined
  if (locals.mode === 'expired') return locals.renew === undefined
  return locals.mode === 'invalid'
}

/** What is wrong, by the form field. */
export function faultsOf(
  name: PageName,
  locals: PageLocals[PageName],
  { t, lang }: Catalog,
  limits: Values | undefined,
): Record<string, string> {
  if ('fault' in locals && locals.fault) {
    const { reason, ...wait } = locals.fault
    const time = 'waitMs' in wait ? waitText(wait.waitMs, lang) : ''
    return { code: t(`verify-email.blocked.${reason}`, { time }) }
  }
  if (name === 'forgot-password' || name === 'verify-email') {
    const field = name === 'forgot-password' ? 'identifier' : 'username'
    return locals.mode === 'invalid' ? { [field]: t(`${name}.invalid.refusal`) } : {}
  }
  if (!('minLength' in locals)) return {}
  const { mode, also, excess = 0, hostReason } = locals
  const wrong = [mode, also].filter((each) => each !== undefined && each !== 'form')
  const values = { ...limits, excess: numberText(excess, lang) }
  return Object.fromEntries(
    wrong.map((fault) => [
      fault === 'password_mismatch' ? 'confirm_password' : 'password',
      (fault === 'password_host' && wordsIn(lang, hostReason)) ||
        t(`reset-password.${fault}.refusal`, values),
    ]),
  )
}
