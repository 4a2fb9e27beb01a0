import { createHash } from 'node:crypto'
import type { ShownBrand } from './brand.ts'
import type { Catalog, Values } from './catalog.ts'
import { mailboxOf } from './open-mailbox.ts'
import type { PageLocals, PageName } from './page-locals.ts'
import { formQuery } from '../contract/requests.ts'
import { MAX_PASSWORD_BYTES } from '../settings/kinds.ts'
import { maskedAddress } from '../settings/addresses.ts'
import { appsText, factsOf, nameText } from './named.ts'
import { faultsOf, stateIcon, titlesOf } from './page-modes.ts'
import type { Templates } from './templates.ts'
import {
  amountText,
  initialOf,
  isolated,
  lifetimeText,
  numberText,
  shownClient,
  waitText,
} from './wording.ts'

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
