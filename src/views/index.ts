/** Renders pages and mails. This folder never knows a request, a record or an account: it gets values, and returns text. */
import type { Log } from '../contract/index.ts'
import { must } from '../errors.ts'
import { logJsonLines } from '../log.ts'
import { accentCss, shownBrand, type Brand } from './brand.ts'
import { findProblems, tryAll, warnOfOddities } from './check-overrides.ts'
import { chooseLocale, type Languages } from './languages.ts'
import { canonicalLocale, createCatalog, readLocales } from './locales.ts'
import { renderMail, SAMPLE_MAILS, type MailLocals, type MailName } from './mails.ts'
import { PAGE_NAMES, type PageLocals, type PageName } from './page-locals.ts'
import { assetOf, renderPage } from './pages.ts'
import { createTemplates } from './templates.ts'
import { missingFrom, readViewFiles } from './view-files.ts'

export type { Asset } from './pages.ts'
export type { MailLocals, MailName } from './mails.ts'
export type * from './page-locals.ts'

export type Views = ReturnType<typeof createViews>

interface ViewsOptions {
  viewsDirectory?: string | undefined
  defaultLocale?: string | undefined
  /** A checked brand. */
  brand?: Brand | undefined
  captcha?: { html: string } | undefined
  log?: Log
}

const REFERENCE_LOCALE = 'en'

/** The start checks that they exist, because they are compiled only with the first page or mail. */
const OUR_TEMPLATES = [
  ...PAGE_NAMES.map((name) => `pages/${name}.pug`),
  'mails/layout.pug',
  ...SAMPLE_MAILS.map(([name]) => `mails/${name}.txt`),
]

/**
 * Reads all files at once, from `views/` and from a host in their place. A request reads no file.
 *
 * @throws TypeError that names the option that is not acceptable, with all mistakes in the host's files.
 */
export function createViews(oauthPath: string, options: ViewsOptions = {}) {
  const { viewsDirectory, defaultLocale = REFERENCE_LOCALE, log = logJsonLines } = options
  const { brand = {}, captcha: { html: captcha } = {} } = options
  const problems: string[] = []
  const files = readViewFiles(viewsDirectory, problems)
  const missing = missingFrom(files.own, OUR_TEMPLATES)
  must(missing.length === 0, `the package is damaged: views/ has no ${missing.join(', ')}`)
  const locales = readLocales(files, problems)
  const templates = createTemplates(files, log, problems)
  const reference = locales.get(REFERENCE_LOCALE)
  must(reference, `locales/${REFERENCE_LOCALE}.json is missing`)
  const wanted = locales.get(canonicalLocale(defaultLocale) ?? '')
  const byDefault = wanted ?? reference
  const overrides = { files, used: templates.used, locales, reference, defaultLocale: byDefault }
  problems.push(...findProblems(overrides))
  const shown = shownBrand(brand)
  const theme = files.hosts.get('theme.css')?.text
  const icon = templates.read('account-flows.svg')
  const styles = [templates.read('account-flows.css'), accentCss(brand.colour), theme]
  const assets = {
    stylesheet: assetOf(styles.filter((css) => css !== undefined).join('\n')),
    script: assetOf(templates.read('account-flows.js')),
    // Our icon has our accent colour.
    favicon: assetOf(shown.accent ? icon.replaceAll('#1d4fb4', shown.accent) : icon),
  }
  const frame = {
    brand: shown,
    captcha,
    oauthPath,
    stylesheet: `${oauthPath}/account-flows.css?v=${assets.stylesheet.version}`,
    script: `${oauthPath}/account-flows.js?v=${assets.script.version}`,
    favicon: `${oauthPath}/account-flows.svg?v=${assets.favicon.version}`,
  }
  const fallback = createCatalog(byDefault, [reference])
  if (files.hasHostsTemplates && problems.length === 0)
    problems.push(...tryAll(templates.strict, fallback, frame))
  must(problems.length === 0, `viewsDirectory: ${problems.join('; ')}`)
  must(wanted, `defaultLocale must be one of ${[...locales.keys()].join(', ')}`)
  warnOfOddities(overrides, log)

  const catalogs = new Map(
    [...locales].map(([locale, words]) => [locale, createCatalog(words, [byDefault, reference])]),
  )
  const spoken = [...catalogs.keys()]
  const localeFor = (languages: Languages) => chooseLocale(spoken, languages, byDefault.locale)
  const catalogFor = (languages: Languages) => catalogs.get(localeFor(languages)) ?? fallback

  return {
    /** The languages with words (BCP 47, canonical). */
    locales: spoken,
    localeFor,
    ...assets,

    page: <N extends PageName>(
      name: N,
      locals: PageLocals[N],
      languages: Languages = {},
      formId?: string,
    ) => renderPage(templates, catalogFor(languages), frame, name, locals, languages.asked, formId),

    mail: (name: MailName, locals: MailLocals, languages: Languages = {}) =>
      renderMail(templates, catalogFor(languages), name, locals, shown),
  }
}
