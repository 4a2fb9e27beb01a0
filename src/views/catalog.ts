import type { LocaleWords } from './locale-files.ts'

export type Values = Record<string, string | number>

/** The words of one locale; what it lacks is said in the default locale's, and then in ours. */
export interface Catalog {
  /** BCP 47. */
  lang: string
  dir: 'ltr' | 'rtl'
  has(key: string): boolean
  /** A missing word is a defect of a template: thrown, never shown to a user. */
  t(key: string, values?: Values): string
}

/** @param fallbacks - asked in their order for what the locale has no word for. */
export function createCatalog(
  { locale, dir, words }: LocaleWords,
  fallbacks: readonly LocaleWords[],
): Catalog {
  const sources = [words, ...fallbacks.map((fallback) => fallback.words)]
  const wordFor = (key: string) => sources.find((source) => source.has(key))?.get(key)
  return {
    lang: locale,
    dir,
    has: (key) => wordFor(key) !== undefined,
    t(key, values = {}) {
      const word = wordFor(key)
      if (word === undefined) throw new TypeError(`locales/${locale}.json has no text ${key}`)
      return fill(word, (name) => values[name])
    },
  }
}

/** One pass: what a value contains is never looked at again. */
export function fill(text: string, valueOf: (name: string) => string | number | undefined): string {
  return text.replace(PLACEHOLDER, (braces, name: string) => String(valueOf(name) ?? braces))
}

const PLACEHOLDER = /\{([\w.-]+)\}/g

export function placeholdersOf(text: string): string[] {
  return [...text.matchAll(PLACEHOLDER)].map(([, name = '']) => name)
}
