import { createHash } from 'node:crypto'
import type { ShownBrand } from './brand.ts'
import type { Catalog, Values } from './locales.ts'
import { ERROR_STATUS, type PageLocals, type PageName } from './page-locals.ts'
import { formQuery } from '../contract/carried-query.ts'
import { MAX_PASSWORD_BYTES } from '../settings/kinds.ts'
import { maskedAddress } from '../settings/mail-address.ts'
import {
  amountText,
  appsText,
  factsOf,
  initialOf,
  isolated,
  lifetimeText,
  nameText,
  numberText,
  shownClient,
  waitText,
} from './wording.ts'
import type { Templates } from './templates.ts'
import { wordsIn } from './languages.ts'

export function renderPage<N extends PageName>(
  { render }: Templates,
  catalog: Catalog,
  frame: PageFrame,
  name: N,
  locals: PageLocals[N],
  uiLocales?: string,
  formId?: string,
): string {
  const { t, has, lang, dir } = catalog
  const limits =
    'minLength' in locals ? limitsText(locals.minLength, locals.maxLength, catalog) : undefined
  // That no field is wrong for.
  const isNotYet = 'isNotYet' in locals && locals.isNotYet
  const refusal = isNotYet ? t(`${name}.${locals.mode}.refusal`) : undefined
  const faults = faultsOf(name, locals, catalog, limits)
  const waitMs = 'waitMs' in locals ? locals.waitMs : undefined
  const sentTo = 'sentTo' in locals ? maskedAddress(locals.sentTo) : undefined
  return render(`pages/${name}`, {
    ...locals,
    uiLocales,
    formId,
    again:
      'carried' in locals && locals.carried
        ? `${frame.oauthPath}/forgot-password${formQuery(locals.carried, uiLocales)}`
        : undefined,
    t,
    lang,
    dir,
    ...frame,
    initialOf,
    page: name,
    title: t(titlesOf(name, locals).find(has) ?? `${name}.title`),
    refusal,
    faults,
    facts:
      locals.mode === 'elsewhere' ? factsOf(catalog, { ...locals, ...locals.client }) : undefined,
    isRefused: refusal !== undefined || Object.keys(faults).length > 0,
    limits,
    maxBytes: MAX_PASSWORD_BYTES,
    sentTo: sentTo === undefined ? undefined : isolated(sentTo, dir),
    codeWait: waitMs === undefined ? undefined : waitText(waitMs, lang),
    account: 'username' in locals ? nameText(catalog, locals.username) : undefined,
    lifetime: 'lifetimeMs' in locals ? lifetimeText(locals.lifetimeMs, lang) : undefined,
    wait: waitMs !== undefined && waitMs > 0 ? waitOf(waitMs, lang) : undefined,
    client: shownClient(locals.client),
    ...appsText(catalog, 'apps' in locals ? locals.apps : undefined),
    icon: stateIcon(name, locals),
    mailbox: mailboxOf(
      'typed' in locals ? locals.typed : 'sentTo' in locals ? locals.sentTo : undefined,
    ),
  })
}

/** The limits of a password, as numbers and with the word for characters. */
function limitsText(min: number, max: number, catalog: Catalog): Values {
  return {
    min: numberText(min, catalog.lang),
    max: numberText(max, catalog.lang),
    min_characters: charactersText(min, catalog),
    max_characters: charactersText(max, catalog),
  }
}

/** Each language has its own plural forms (CLDR), and `other`. */
function charactersText(count: number, { t, has, lang }: Catalog): string {
  const key = `characters.${new Intl.PluralRules(lang).select(count)}`
  return t(has(key) ? key : 'characters.other', { count: numberText(count, lang) })
}

/** A time that is counted down, rounded up. The script of the pages words it in the same way. */
function waitOf(ms: number, lang: string) {
  const seconds = Math.ceil(ms / 1000)
  const time =
    seconds > 90
      ? amountText(Math.ceil(seconds / 60), 'minute', lang)
      : amountText(seconds, 'second', lang)
  return { seconds, time }
}

export type Asset = ReturnType<typeof assetOf>

/** A file that our pages load. Browsers keep each version for ever, so it follows from the text. */
export function assetOf(text: string) {
  return { text, version: createHash('sha256').update(text).digest('base64url').slice(0, 12) }
}

export type PageFrame = ReturnType<typeof frameOf> & { captcha?: string | undefined }

/** What all pages have in common: the brand, and the addresses of their files. */
export function frameOf(
  oauthPath: string,
  { stylesheet, script, favicon }: Record<'stylesheet' | 'script' | 'favicon', Asset>,
  brand: ShownBrand,
) {
  return {
    brand,
    oauthPath,
    stylesheet: `${oauthPath}/account-flows.css?v=${stylesheet.version}`,
    script: `${oauthPath}/account-flows.js?v=${script.version}`,
    favicon: `${oauthPath}/account-flows.svg?v=${favicon.version}`,
  }
}

/** Status, title, picture, captcha and errors at fields: they follow from the name of a page, its mode, reason and fault. */

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

/** Where the mail of these domains is read. */
const MAILBOXES = [
  { name: 'Gmail', href: 'https://mail.google.com/', domains: /^(gmail|googlemail)\.com$/ },
  {
    name: 'Outlook',
    href: 'https://outlook.live.com/mail/',
    domains: /^(outlook|hotmail|live)\.(com|[a-z]{2}|com?\.[a-z]{2})$/,
  },
  { name: 'Yahoo! メール', href: 'https://mail.yahoo.co.jp/', domains: /^yahoo\.co\.jp$/ },
  {
    name: 'Yahoo Mail',
    href: 'https://mail.yahoo.com/',
    domains: /^(yahoo|ymail)\.(com|[a-z]{2}|com?\.[a-z]{2})$/,
  },
  { name: 'iCloud Mail', href: 'https://www.icloud.com/mail/', domains: /^(icloud|me|mac)\.com$/ },
]

/** By the typed text alone. `undefined`: it is no address, or of another domain. */
export function mailboxOf(address = '') {
  const domain = address.includes('@') ? (address.split('@').at(-1) ?? '').trim().toLowerCase() : ''
  return MAILBOXES.find(({ domains }) => domains.test(domain))
}
