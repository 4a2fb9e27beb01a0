import type { Log } from '../ports/index.ts'
import { placeholdersOf } from './catalog.ts'
import type { LocaleWords } from './locale-files.ts'
import type { LayeredTemplates } from './templates.ts'
import type { ViewFile, ViewFiles } from './view-files.ts'

interface Overrides {
  files: ViewFiles
  templates: LayeredTemplates
  locales: ReadonlyMap<string, LocaleWords>
  defaultLocale: LocaleWords
  /** Ours, which has every word. */
  reference: LocaleWords
}

/** What cannot be right in the files of a host. */
export function findProblems({ files, locales, defaultLocale, reference }: Overrides): string[] {
  function problemsOfFile({ name, text }: ViewFile): string[] {
    const isEmpty = text.trim() === '' && /^(pages|mails)\/[^/]+$/.test(name)
    return [
      ...(isEmpty ? [`${name} is empty`] : []),
      ...literalKeys(name, text)
        .filter((key) => !defaultLocale.words.has(key) && !reference.words.has(key))
        .map((key) => `${name}: there is no text ${key}`),
    ]
  }

  function problemsOfLocale({ locale, hosts }: LocaleWords): string[] {
    return [...hosts].flatMap(([key, word]) => {
      const ours = reference.own.get(key) ?? reference.own.get(otherForm(key))
      if (ours === undefined) return []
      const known = placeholdersOf(ours)
      return placeholdersOf(word)
        .filter((placeholder) => !known.includes(placeholder))
        .map((placeholder) => `locales/${locale}.json: ${key} has no value for {${placeholder}}`)
    })
  }

  return [
    ...[...files.hosts.values()].flatMap(problemsOfFile),
    ...[...locales.values()].flatMap(problemsOfLocale),
  ]
}

/** What is probably not meant so; the host goes on. */
export function warnOfOddities(
  { files, templates, locales, defaultLocale, reference }: Overrides,
  log: Log,
): void {
  const unused = [...files.hosts.keys()].filter(
    (name) => !files.own.has(name) && !templates.used.has(name) && !isReadAnyway(name),
  )
  if (unused.length > 0)
    log('warn', 'viewsDirectory has files that are not used: check their names', {
      files: unused.toSorted(),
    })

  const templateTexts = [...files.hosts.values()]
    .filter(({ name }) => /\.(pug|txt)$/.test(name))
    .map(({ text }) => text)
  for (const { locale, own, hosts, words } of locales.values()) {
    const unknown = [...hosts.keys()].filter(
      (key) =>
        !reference.own.has(key) &&
        !reference.own.has(otherForm(key)) &&
        !templateTexts.some((text) => text.includes(key)),
    )
    if (unknown.length > 0) {
      log('warn', 'viewsDirectory has texts that are not used: check their keys', {
        locale,
        keys: unknown,
      })
    }
    const missing = [...reference.own.keys()].filter(
      (key) => !words.has(key) && isSaidIn(locale, key),
    )
    if (own.size === 0 && missing.length > 0) {
      log('warn', 'a locale lacks texts; the default locale is used for them', {
        locale,
        default: defaultLocale.locale,
        lacking: missing.length,
        of: reference.own.size,
        keys: missing.slice(0, 10),
      })
    }
  }
}

function isReadAnyway(name: string): boolean {
  return name === 'theme.css' || /^locales\/[^/]+\.json$/.test(name)
}

const PLURAL_FORM = /\.(zero|one|two|few|many|other)$/

/** Languages have different plural forms; each has this one. */
function otherForm(key: string): string {
  return key.replace(PLURAL_FORM, '.other')
}

function isSaidIn(locale: string, key: string): boolean {
  const form = PLURAL_FORM.exec(key)?.[1]
  const forms: string[] = new Intl.PluralRules(locale).resolvedOptions().pluralCategories
  return form === undefined || forms.includes(form)
}

/** Keys that a template says outright. */
function literalKeys(name: string, text: string): string[] {
  if (!name.endsWith('.pug')) return []
  return [...text.matchAll(/\bt\(\s*(['"`])([\w.-]+)\1/g)].map(([, , key = '']) => key)
}
