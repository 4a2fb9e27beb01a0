import type { Catalog, Values } from './catalog.ts'
import type { PageLocals, PageName } from './page-locals.ts'
import { wordsIn } from './languages.ts'
import { numberText, waitText } from './wording.ts'

/** What no field can mend. */
export function refusalOf(name: PageName, locals: PageLocals[PageName], { t }: Catalog) {
  if ('isNotYet' in locals && locals.isNotYet) return t(`${name}.${locals.mode}.refusal`)
  return undefined
}

/** What is wrong, by the field to mend it in. */
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
