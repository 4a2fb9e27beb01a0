import type { LocaleWords } from './locale-files.ts'

export type Values = Record<string, string | number>

export type Catalog = ReturnType<typeof createCatalog>

/** The words of one locale. What it lacks is said by the `fallbacks`, in their order. */
export function createCatalog(spoken: LocaleWords, fallbacks: readonly LocaleWords[]) {
  const { locale: lang, dir } = spoken
  const all = new Map<string, string>()
  for (const { words } of [...fallbacks.toReversed(), spoken])
    for (const [key, word] of words) all.set(key, word)
  return {
    lang,
    dir,
    has: (key: string) => all.has(key),
    /** Throws if there is no word: a user never sees that. */
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
