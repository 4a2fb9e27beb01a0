/** From the locals of a page to its HTML and its HTTP status. A page follows from its name, its mode, its reason and its fault. */
import { createHash } from 'node:crypto'
import { formQuery, type LinkReason, type VerificationReason } from '../contract/parameters.ts'
import { MAX_PASSWORD_BYTES } from '../settings/kinds.ts'
import { maskedAddress } from '../settings/addresses.ts'
import type { ShownBrand } from './brand.ts'
import { ofFirstPassword } from './first-password.ts'
import { wordsIn } from './languages.ts'
import type { Catalog, Values } from './locales.ts'
import {
  ERROR_STATUS,
  OF_ADDRESSES,
  REFUSING,
  type PageLocals,
  type PageName,
} from './page-locals.ts'
import type { Templates } from './templates.ts'
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
} from './formats.ts'

type Keys<Each> = Each extends unknown ? keyof Each : never
type Value<Each, Key> = Each extends unknown ? (Key extends keyof Each ? Each[Key] : never) : never
type All = PageLocals[PageName]

/** The locals of any page, each `undefined` where the page has none. */
type AnyLocals = Pick<All, 'mode'> & { [K in Keys<All>]?: Value<All, K> | undefined }

/** What all pages have in common. The last three are addresses. */
export interface PageFrame {
  brand: ShownBrand
  captcha: string | undefined
  oauthPath: string
  stylesheet: string
  script: string
  favicon: string
}

export function renderPage<N extends PageName>(
  { render }: Templates,
  catalog: Catalog,
  frame: PageFrame,
  name: N,
  locals: PageLocals[N],
  uiLocales?: string,
  formId?: string,
) {
  const given: AnyLocals = locals
  const { t, has, lang, dir } = given.isFirst ? ofFirstPassword(catalog) : catalog
  const { mode, parameters, username, lifetimeMs, waitMs, typed, sentTo, client } = given
  const hasCaptcha = frame.captcha !== undefined && asksForMail(name, given)
  const limits = limitsText(given, catalog)
  // A refusal that is not about a field.
  const refusal = given.isNotYet ? t(`${name}.${mode}.refusal`) : undefined
  const faults = faultsOf(name, given, catalog, limits)
  const address = maskedAddress(sentTo)
  const html = render(`pages/${name}`, {
    ...locals,
    uiLocales,
    formId,
    again: parameters && `${frame.oauthPath}/forgot-password${formQuery(parameters, uiLocales)}`,
    t,
    lang,
    dir,
    ...frame,
    captcha: hasCaptcha ? frame.captcha : undefined,
    initialOf,
    page: name,
    title: t(titlesOf(name, given).find(has) ?? `${name}.title`),
    refusal,
    faults,
    facts: mode === 'elsewhere' ? factsOf(catalog, { ...given, ...client }) : undefined,
    isRefused: refusal !== undefined || Object.keys(faults).length > 0,
    limits,
    maxBytes: MAX_PASSWORD_BYTES,
    sentTo: address && isolated(address, dir),
    codeWait: waitMs === undefined ? undefined : waitText(waitMs, lang),
    account: username === undefined ? undefined : nameText(catalog, username),
    lifetime: lifetimeMs === undefined ? undefined : lifetimeText(lifetimeMs, lang),
    wait: waitMs !== undefined && waitMs > 0 ? waitOf(waitMs, lang) : undefined,
    client: shownClient(client),
    ...appsText(catalog, given.apps),
    icon: stateIcon(name, given),
    mailbox: webmailOf(typed ?? sentTo),
    typed: given.fault?.typed,
  })
  return { html, status: statusOf(given), lang, hasCaptcha }
}

/** The status of a page: 400 if the page refuses something. */
function statusOf({ link, fault, isNotYet, mode }: AnyLocals): number {
  // With 403, no browser keeps the page of a link that it fetched ahead.
  if (link) return 403
  if (isNotYet || (fault && fault.reason !== 'not_yet')) return 400
  const ofErrors: Record<string, number> = ERROR_STATUS
  const isRefusal = REFUSING.includes(mode) || mode.startsWith('password_')
  return ofErrors[mode] ?? (isRefusal ? 400 : 200)
}

/** Whether the page has a form with a name that gets a link. Only these forms have a captcha, not the one click that replaces a link. */
function asksForMail(name: PageName, { mode, sentTo, renew, reason }: AnyLocals): boolean {
  if (name === 'forgot-password') return mode !== 'sent'
  if (name !== 'verify-email') return false
  if (mode === 'blocked') return maskedAddress(sentTo) !== undefined
  return mode === 'invalid' || (mode === 'expired' && renew === undefined && reason !== 'taken')
}

/** Keys of the title, the most specific first. */
function titlesOf(name: PageName, { mode, reason, code, hasNoLogin }: AnyLocals): string[] {
  if (mode === 'elsewhere' && !code)
    return [`${name}.${hasNoLogin ? 'confirm' : 'elsewhere.over'}.title`]
  if (reason === undefined) return [`${name}.${mode}.title`]
  return [name, 'reset-password'].map((each) => `${each}.${mode}.${reason}.title`)
}

type State = All['mode'] | LinkReason | VerificationReason

/** The icons of states: of one page, or of any. The other links and errors have `bad`. */
const ICONS: readonly (readonly [icon: string, of: readonly (State | `${PageName}.${State}`)[]])[] =
  [
    ['mail', ['sent', 'confirm', 'elsewhere', 'superseded']],
    ['good', ['done', 'verified', 'signed_in', 'verify-email.used']],
    ['safe', ['stopped', 'secured', 'unverified', 'signed_out']],
    ['late', ['ended', 'expired', 'too_many_requests', 'unavailable']],
    ['info', ['used', 'changed', 'taken', 'later', 'not-me.done']],
    ['who', ['other_account']],
  ]

/** The icon of the page, by its reason, or else by its mode. `undefined`: the page has a form to fill in. */
function stateIcon(name: PageName, { mode, reason, code, hasNoLogin }: AnyLocals) {
  const isOver = mode === 'elsewhere' && !code && !hasNoLogin
  const state = isOver ? 'ended' : (reason ?? mode)
  const iconOf = (key: string) => ICONS.find(([, all]) => all.some((each) => each === key))?.[0]
  const other = reason !== undefined || name === 'error' ? 'bad' : undefined
  return iconOf(`${name}.${state}`) ?? iconOf(state) ?? other
}

function faultsOf(
  name: PageName,
  { mode, fault, also, excess = 0, hostReason }: AnyLocals,
  { t, lang }: Catalog,
  limits: Values | undefined,
): Record<string, string> {
  if (fault) {
    const time = fault.waitMs === undefined ? '' : waitText(fault.waitMs, lang)
    const field = OF_ADDRESSES.some((each) => each === fault.reason) ? 'email' : 'code'
    const help = t('verify-email.blocked.help')
    return { [field]: t(`verify-email.blocked.${fault.reason}`, { time, help }) }
  }
  if (name === 'forgot-password' || name === 'verify-email') {
    const field = name === 'forgot-password' ? 'identifier' : 'username'
    return mode === 'invalid' ? { [field]: t(`${name}.invalid.refusal`) } : {}
  }
  if (!limits) return {}
  const wrong = [mode, also].filter((each) => each !== undefined && each !== 'form')
  const values = { ...limits, excess: numberText(excess, lang) }
  return Object.fromEntries(
    wrong.map((each) => [
      each === 'password_mismatch' ? 'confirm_password' : 'password',
      (each === 'password_host' && wordsIn(lang, hostReason)) ||
        t(`reset-password.${each}.refusal`, values),
    ]),
  )
}

function limitsText({ minLength: min, maxLength: max }: AnyLocals, catalog: Catalog) {
  if (min === undefined || max === undefined) return undefined
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

/** Counted down, and rounded up. The script of the pages words it in the same way. */
function waitOf(ms: number, lang: string) {
  const seconds = Math.ceil(ms / 1000)
  const time =
    seconds > 90
      ? amountText(Math.ceil(seconds / 60), 'minute', lang)
      : amountText(seconds, 'second', lang)
  return { seconds, time }
}

export type Asset = ReturnType<typeof assetOf>

/** A file that our pages load. Browsers keep each version for ever, so the version follows from the text. */
export function assetOf(text: string) {
  return { text, version: createHash('sha256').update(text).digest('base64url').slice(0, 12) }
}

/** Where users read the mail of these domains. */
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

/** Decides by the typed text alone. `undefined`: the text is no address, or has another domain. */
export function webmailOf(address = '') {
  const domain = address.includes('@') ? (address.split('@').at(-1) ?? '').trim().toLowerCase() : ''
  return MAILBOXES.find(({ domains }) => domains.test(domain))
}
