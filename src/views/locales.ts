/** The words of pages and mails: read from the files of each language, and looked up by their keys. */
import { basename } from 'node:path'
import { isJsonObject, jsonOf } from '../errors.ts'
import type { ViewFile, ViewFiles } from './view-files.ts'

export interface LocaleWords {
  /** BCP 47, in its canonical form. */
  locale: string
  dir: 'ltr' | 'rtl'
  /** Our words, each replaced by the host's word if the host has one. */
  words: ReadonlyMap<string, string>
  own: ReadonlyMap<string, string>
  hosts: ReadonlyMap<string, string>
}

const NONE: ReadonlyMap<string, string> = new Map()

export function readLocales(files: ViewFiles, problems: string[]): Map<string, LocaleWords> {
  const locales = new Map<string, LocaleWords>()
  for (const layer of ['own', 'hosts'] as const) {
    for (const file of files[layer].values()) {
      if (!/^locales\/[^/]+\.json$/.test(file.name)) continue
      const locale = canonicalLocale(basename(file.name, '.json'))
      const read = wordsOf(file)
      const known = locales.get(locale ?? '')
      if (locale === undefined)
        problems.push(`the name of ${file.name} must be a language tag (BCP 47)`)
      else if (known && known[layer] !== NONE)
        problems.push(`${file.name} is a second file for ${locale}`)
      else if (typeof read === 'string') problems.push(read)
      else {
        const dir = read.dir ?? known?.dir ?? (isRightToLeft(locale) ? 'rtl' : 'ltr')
        const words = new Map([...(known?.words ?? []), ...read.words])
        const layers = { own: NONE, hosts: NONE, ...known, [layer]: read.words }
        locales.set(locale, { ...layers, locale, dir, words })
      }
    }
  }
  return locales
}

/** `undefined`: not a language tag. */
export function canonicalLocale(tag: string): string | undefined {
  try {
    return Intl.getCanonicalLocales(tag)[0]
  } catch {
    return undefined
  }
}

/** Reads the words of a file. A returned string says what is wrong with the file. */
function wordsOf({ name, text }: ViewFile) {
  const parsed = jsonOf(text.replace(/^\uFEFF/, ''))
  if (!isJsonObject(parsed)) return `${name} is not a JSON object of texts`
  const words = new Map<string, string>()
  for (const [key, word] of Object.entries(parsed)) {
    if (typeof word !== 'string') return `${name}: ${key} is not a text`
    words.set(key, word)
  }
  const dir = words.get('dir')
  words.delete('dir')
  if (dir !== undefined && dir !== 'ltr' && dir !== 'rtl') return `${name}: dir must be ltr or rtl`
  return { dir, words } as const
}

const RIGHT_TO_LEFT = /^(Adlm|Arab|Hebr|Mand|Nkoo|Rohg|Samr|Syrc|Thaa)$/

/** Decides by the script that the language is mostly written in. */
function isRightToLeft(locale: string): boolean {
  return RIGHT_TO_LEFT.test(new Intl.Locale(locale).maximize().script ?? '')
}

export type Values = Record<string, string | number>

/** `isOfMail`: the words are for a mail, in which no name may become a link. */
export type Catalog = ReturnType<typeof createCatalog> & { isOfMail?: boolean }

/** The words of one locale. Words that it lacks come from the `fallbacks`, in their order. */
export function createCatalog(spoken: LocaleWords, fallbacks: readonly LocaleWords[]) {
  const { locale: lang, dir } = spoken
  const all = new Map([...fallbacks.toReversed(), spoken].flatMap(({ words }) => Array.from(words)))
  return {
    lang,
    dir,
    has: (key: string) => all.has(key),
    /** Throws if no locale has the word. A user never sees that. */
    t(key: string, values: Values = {}): string {
      const word = all.get(key)
      if (word === undefined) throw new TypeError(`locales/${lang}.json has no text ${key}`)
      return fill(word, (name) => values[name])
    },
  }
}

/** In one pass, so that placeholders in a value stay as they are. */
export function fill(text: string, valueOf: (name: string) => string | number | undefined): string {
  return text.replace(PLACEHOLDER, (braces, name: string) => String(valueOf(name) ?? braces))
}

const PLACEHOLDER = /\{([\w.-]+)\}/g

export function placeholdersOf(text: string): string[] {
  return [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name)
}
