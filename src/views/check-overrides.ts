import type { Log } from '../contract/index.ts'
import { must } from '../errors.ts'
import { placeholdersOf, type Catalog, type LocaleWords } from './locales.ts'
import { renderMail, SAMPLE_MAILS } from './mails.ts'
import { samplePages } from './page-locals.ts'
import { renderPage, type PageFrame } from './pages.ts'
import { failureOf, type Templates } from './templates.ts'
import type { ViewFiles } from './view-files.ts'

interface Overrides {
  files: ViewFiles
  /** Names of the files that pages and mails are made of. */
  used: ReadonlySet<string>
  locales: ReadonlyMap<string, LocaleWords>
  defaultLocale: LocaleWords
  /** Our locale that has every word. */
  reference: LocaleWords
}

/** Lists mistakes in the files of a host. */
export function findProblems({ files, locales, defaultLocale, reference }: Overrides): string[] {
  const isWord = (key: string) => defaultLocale.words.has(key) || reference.words.has(key)
  const inFiles = [...files.hosts.values()].flatMap(({ name, text }) => {
    const missing = literalKeys(name, text).filter((key) => !isWord(key))
    const isEmpty = text.trim() === '' && /^(pages|mails)\/[^/]+$/.test(name)
    return isEmpty ? [`${name} is empty`] : missing.map((key) => `${name}: there is no text ${key}`)
  })
  const inLocales = [...locales.values()].flatMap(({ locale, hosts }) =>
    [...hosts].flatMap(([key, word]) => {
      const ours = ourWord(reference, key)
      if (ours === undefined) return []
      const known = placeholdersOf(ours)
      const unknown = placeholdersOf(word).filter((each) => !known.includes(each))
      return unknown.map((each) => `locales/${locale}.json: ${key} has no value for {${each}}`)
    }),
  )
  return [...inFiles, ...inLocales]
}

export function warnOfOddities(overrides: Overrides, log: Log): void {
  const { files, used, locales, defaultLocale, reference } = overrides
  const unused = [...files.hosts.keys()].filter(
    (name) => !files.own.has(name) && !used.has(name) && !READ_ANYWAY.test(name),
  )
  if (unused.length > 0)
    log('warn', 'viewsDirectory has files that are not used: check their names', {
      files: unused.toSorted(),
    })

  const templates = [...files.hosts.values()].filter(({ name }) => /\.(pug|txt)$/.test(name))
  const isUsed = (key: string) =>
    ourWord(reference, key) !== undefined || templates.some(({ text }) => text.includes(key))
  for (const { locale, own, hosts, words } of locales.values()) {
    const keys = [...hosts.keys()].filter((key) => !isUsed(key))
    if (keys.length > 0)
      log('warn', 'viewsDirectory has texts that are not used: check their keys', { locale, keys })
    const missing = [...reference.own.keys()].filter(
      (key) => !words.has(key) && isSaidIn(locale, key),
    )
    if (own.size === 0 && missing.length > 0)
      log('warn', 'a locale lacks texts; the default locale is used for them', {
        locale,
        default: defaultLocale.locale,
        lacking: missing.length,
        of: reference.own.size,
        keys: missing.slice(0, 10),
      })
  }
}

const READ_ANYWAY = /^(theme\.css|locales\/[^/]+\.json)$/
const PLURAL_FORM = /\.(zero|one|two|few|many|other)$/

/** Languages have different plural forms, but all have `other`. */
function ourWord({ own }: LocaleWords, key: string): string | undefined {
  return own.get(key) ?? own.get(key.replace(PLURAL_FORM, '.other'))
}

function isSaidIn(locale: string, key: string): boolean {
  const form = PLURAL_FORM.exec(key)?.[1]
  const forms: string[] = new Intl.PluralRules(locale).resolvedOptions().pluralCategories
  return form === undefined || forms.includes(form)
}

/** Keys that a template has as literals. */
function literalKeys(name: string, text: string): string[] {
  if (!name.endsWith('.pug')) return []
  return [...text.matchAll(/\bt\(\s*(['"`])([\w.-]+)\1/g)].map(([, , key = '']) => key)
}

/** Renders every page and mail once, so that mistakes are found at the start. `templates` are strict. */
export function tryAll(templates: Templates, catalog: Catalog, frame: PageFrame): string[] {
  const problems = new Set<string>()

  function attempt(name: string, work: () => unknown) {
    try {
      work()
    } catch (error) {
      const { where, message } = failureOf(error)
      problems.add(`${where ?? name}: ${message}`)
    }
  }

  for (const { name, locals } of samplePages) {
    const render = () => renderPage(templates, catalog, frame, name, locals, 'en', 'form')
    attempt(`pages/${name}`, render)
  }
  for (const [name, locals] of SAMPLE_MAILS) {
    attempt(`mails/${name}`, () => {
      const { text, html } = renderMail(templates, catalog, name, locals, frame.brand)
      const { link } = locals
      const isLink = html.includes(`"${link}"`) || html.includes(`'${link}'`)
      const how = '{link} must stand alone between blank lines, and be a link in the HTML'
      must(link === '' || !text.includes(link) || isLink, how)
    })
  }
  return [...problems]
}
