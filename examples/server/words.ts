import { readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { languageFor } from '../../src/index.ts'

/** The words of one language. */
export interface Words {
  /** BCP 47. */
  lang: string
  dir: string
  has(key: string): boolean
  /** The text, with `{name}` replaced by a value. */
  t(key: string, values?: Record<string, string>): string
}

const OWN = new URL('words/', import.meta.url)
/** Of the package. What the pages of both say is there. */
const SHARED = new URL('../../views/locales/', import.meta.url)

const english = wordsOf('en')
const catalogs = new Map([['en', english]])
for (const file of readdirSync(OWN)) {
  const lang = file.replace('.json', '')
  catalogs.set(lang, wordsOf(lang))
}
const languages: [string, ...string[]] = ['en', ...catalogs.keys()]

/** In the language that the pages of the flows have for the same request. */
export function wordsFor(req: IncomingMessage, uiLocales?: unknown): Words {
  return catalogs.get(languageFor(req, languages, uiLocales)) ?? english
}

function wordsOf(lang: string): Words {
  const words = new Map([SHARED, OWN].flatMap((folder) => Object.entries(read(folder, lang))))
  const word = (key: string) => words.get(key) ?? key
  const dir = words.get('dir') ?? 'ltr'

  // A name that is read in another direction than the text moves nothing of it.
  const isolated = (value: string) =>
    dir === 'rtl' || /\P{ASCII}/u.test(value) ? `\u2068${value}\u2069` : value

  return {
    lang,
    dir,
    has: (key) => words.has(key),
    t: (key, values = {}) =>
      word(key).replace(/\{(\w+)\}/g, (braces, name: string) =>
        values[name] === undefined ? braces : isolated(values[name]),
      ),
  }
}

function read(folder: URL, lang: string): Record<string, string> {
  return JSON.parse(readFileSync(new URL(`${lang}.json`, folder), 'utf8'))
}
