import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export type Values = Record<string, string | number>

/** The words of one locale. */
export interface Catalog {
  /** BCP 47. */
  lang: string
  dir: 'ltr' | 'rtl'
  has(key: string): boolean
  /** A missing word is a defect of the package: thrown, never shown to a user. */
  t(key: string, values?: Values): string
}

/** One catalog for each file in `locales/`, by its name. */
export function readCatalogs(directory: string): ReadonlyMap<string, Catalog> {
  const files = readdirSync(join(directory, 'locales')).filter((name) => name.endsWith('.json'))
  return new Map(
    files.map((file) => {
      const locale = file.slice(0, -'.json'.length)
      return [locale, readCatalog(locale, join(directory, 'locales', file))]
    }),
  )
}

function readCatalog(locale: string, path: string): Catalog {
  const parsed: unknown = JSON.parse(readFileSync(path, 'utf8'))
  const words = new Map<string, unknown>(Object.entries(parsed ?? {}))
  return {
    lang: locale,
    dir: words.get('dir') === 'rtl' ? 'rtl' : 'ltr',
    has: (key) => words.has(key),
    t(key, values = {}) {
      const word = words.get(key)
      if (typeof word !== 'string') throw new TypeError(`locales/${locale}.json has no text ${key}`)
      return fill(word, (name) => values[name])
    },
  }
}

/** One pass: what a value contains is never looked at again. */
export function fill(text: string, valueOf: (name: string) => string | number | undefined): string {
  return text.replace(/\{([\w.-]+)\}/g, (braces, name: string) => String(valueOf(name) ?? braces))
}
