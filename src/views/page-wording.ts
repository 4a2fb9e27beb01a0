import type { Catalog, Values } from './catalog.ts'
import type { PageLocals, PageName } from './page-locals.ts'

/** What was wrong, and the field to mend it in; `undefined`: it is not for a field to mend. */
export interface Refusal {
  text: string
  field: string | undefined
}

export function refusalOf(
  name: PageName,
  locals: PageLocals[PageName],
  { t, has }: Catalog,
  limits: Values | undefined,
): Refusal | undefined {
  if ((locals.mode === 'blocked' || locals.mode === 'confirm') && !locals.isNotYet) return undefined
  const key = `${name}.${locals.mode}.refusal`
  return has(key) ? { text: t(key, limits), field: fieldOf(name, locals.mode) } : undefined
}

function fieldOf(name: PageName, mode: string): string | undefined {
  if (name === 'forgot-password') return 'identifier'
  if (name === 'reset-password') return 'password'
  return mode === 'invalid' ? 'username' : undefined
}

/** The limits of a password, as bare numbers and with the word that is counted. */
export function limitsText(min: number, max: number, catalog: Catalog): Values {
  return {
    min: numberText(min, catalog.lang),
    max: numberText(max, catalog.lang),
    min_characters: charactersText(min, catalog),
    max_characters: charactersText(max, catalog),
  }
}

/** A catalog has the plural forms of its language (CLDR), and `other` in any case. */
function charactersText(count: number, { t, has, lang }: Catalog): string {
  const key = `characters.${new Intl.PluralRules(lang).select(count)}`
  return t(has(key) ? key : 'characters.other', { count: numberText(count, lang) })
}

function numberText(value: number, lang: string): string {
  return new Intl.NumberFormat(lang).format(value)
}

/** A time that is counted down. */
export interface Wait {
  seconds: number
  time: string
}

/** Rounds up, so that nobody is told to come back too early. The script of the pages words it in the same way. */
export function waitOf(ms: number, lang: string): Wait {
  const seconds = Math.ceil(ms / 1000)
  const [amount, unit] = seconds > 90 ? [Math.ceil(seconds / 60), 'minute'] : [seconds, 'second']
  const format = new Intl.NumberFormat(lang, { style: 'unit', unit, unitDisplay: 'long' })
  return { seconds, time: format.format(amount) }
}
