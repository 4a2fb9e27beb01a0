import Negotiator from 'negotiator'
import type { ReasonWords } from '../contract/index.ts'
import { canonicalLocale } from './locales.ts'

/** What is known of the reader's language, best first. */
export interface Languages {
  /** `ui_locales` of the request: language tags, with spaces between them. */
  asked?: string | undefined
  /** The language of the user's account: one tag. */
  user?: string | undefined
  /** The header `Accept-Language`. */
  accepted?: string | undefined
}

/** The locale for the first wanted language that has texts, also those of another country (`de` for `de-AT`, `pt-BR` for `pt`). */
export function chooseLocale(
  locales: readonly string[],
  { asked = '', user = '', accepted = '' }: Languages,
  fallback: string,
): string {
  // Some hosts store `pt_BR`.
  const wanted = [
    ...askedTags(asked),
    ...askedTags(user.replaceAll('_', '-')),
    ...acceptedTags(accepted),
  ]
  for (const [at, tag] of wanted.entries()) {
    if (wanted.slice(0, at).some((earlier) => isShorter(tag, earlier))) continue
    const found = bestOf(locales, tag)
    if (found !== undefined) return found
  }
  return fallback
}

/** The words in this language, in a near one, or else the first ones. */
export function wordsIn(lang: string, words: ReasonWords = ''): string | undefined {
  if (typeof words === 'string') return words
  const tags = Object.keys(words)
  return words[chooseLocale(tags, { asked: lang }, tags[0] ?? '')]
}

/** Browsers add `zh` after `zh-TW` by themselves. That does not ask for the other script. */
function isShorter(tag: string, earlier: string): boolean {
  return earlier.toLowerCase().startsWith(`${tag.toLowerCase()}-`)
}

/** A locale in the script of the tag: one that begins like the tag (RFC 4647, 3.4), or any. Otherwise one that begins like the tag. */
function bestOf(locales: readonly string[], tag: string): string | undefined {
  // Most readers ask for such a tag, and to compare scripts takes time.
  if (locales.includes(tag)) return tag
  const script = writingOf(tag)
  const alike = locales.filter((locale) => script !== undefined && writingOf(locale) === script)
  return longestStart(alike, tag) ?? alike[0] ?? longestStart(locales, tag)
}

function longestStart(locales: readonly string[], tag: string): string | undefined {
  const starts = (locale: string) => `${tag}-`.toLowerCase().startsWith(`${locale}-`.toLowerCase())
  return locales.filter(starts).toSorted((one, other) => other.length - one.length)[0]
}

/** Language and script, such as `zh-Hant` for `zh-TW`. `undefined`: it is no language tag. */
function writingOf(tag: string): string | undefined {
  if (canonicalLocale(tag) === undefined) return undefined
  const { language, script } = new Intl.Locale(tag).maximize()
  return `${language}-${script}`
}

const MAX_TAGS = 20
const MAX_KEPT_LENGTH = 100
/** Longer than 20 tags with their weights. */
const MAX_HEADER_LENGTH = 1000

/** The form of a language tag (BCP 47). */
const TAG = /^[a-z]{2,8}(?:-[a-z0-9]{1,8}){0,7}$/i

/** The tags of `ui_locales`, best first. Malformed tags are left out. */
export function askedTags(uiLocales: string): string[] {
  return uiLocales.split(' ', MAX_TAGS).filter((tag) => TAG.test(tag))
}

/** The tags of `Accept-Language` by weight, without those of weight 0, and without `*`. */
export function acceptedTags(header: string): string[] {
  const headers = { 'accept-language': header.slice(0, MAX_HEADER_LENGTH) }
  const tags = new Negotiator({ headers }).languages()
  return tags.slice(0, MAX_TAGS).filter((tag) => TAG.test(tag))
}

/** As many of the tags as fit into 100 characters. */
export function keptTags(tags: string[], separator: ' ' | ','): string | undefined {
  let kept: string | undefined
  for (const tag of tags) {
    const longer: string = kept === undefined ? tag : kept + separator + tag
    if (longer.length > MAX_KEPT_LENGTH) break
    kept = longer
  }
  return kept
}
