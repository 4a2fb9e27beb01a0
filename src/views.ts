import { fileURLToPath } from 'node:url'
import { readCatalogs } from './views/catalog.ts'
import { chooseLocale, type Languages } from './views/languages.ts'
import { renderMail, type MailLocals, type MailName, type RenderedMail } from './views/mails.ts'
import type { PageLocals, PageName } from './views/page-locals.ts'
import { renderPage } from './views/pages.ts'
import { createTemplates } from './views/templates.ts'

export type { Languages } from './views/languages.ts'
export type { MailLocals, MailName, RenderedMail } from './views/mails.ts'
export type * from './views/page-locals.ts'

export interface Views {
  /** In the language that suits the reader best. */
  page<N extends PageName>(
    name: N,
    locals: PageLocals[N],
    languages?: Languages,
  ): { html: string; lang: string }
  mail(name: MailName, locals: MailLocals, languages?: Languages): RenderedMail
  /** The style sheet of the pages, served at `{oauthPath}/account-flows.css`. */
  stylesheet: string
  /** The one script of the pages, served at `{oauthPath}/account-flows.js`. */
  script: string
  /** Languages that there are words in (BCP 47). */
  locales: string[]
}

const DIRECTORY = fileURLToPath(new URL('../views/', import.meta.url))
const DEFAULT_LOCALE = 'en'

/**
 * Pages and mails out of `views/`, worded by `views/locales/*.json`.
 *
 * @param oauthPath - where the forms, the style sheet and the script are; may be empty.
 */
export function createViews(oauthPath: string): Views {
  const templates = createTemplates(DIRECTORY)
  const catalogs = readCatalogs(DIRECTORY)
  const locales = [...catalogs.keys()]

  function catalogFor(languages: Languages) {
    const catalog = catalogs.get(chooseLocale(locales, languages, DEFAULT_LOCALE))
    if (!catalog) throw new TypeError(`locales/${DEFAULT_LOCALE}.json is missing`)
    return catalog
  }

  return {
    locales,
    stylesheet: templates.read('account-flows.css'),
    script: templates.read('account-flows.js'),

    page(name, locals, languages = {}) {
      const catalog = catalogFor(languages)
      return { html: renderPage(templates, catalog, oauthPath, name, locals), lang: catalog.lang }
    },

    mail: (name, locals, languages = {}) =>
      renderMail(templates, catalogFor(languages), name, locals),
  }
}
