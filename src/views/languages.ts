import { acceptedTags, askedTags } from './language-tags.ts'

/** What is known of the language that somebody reads, best first. */
export interface Languages {
  /** `ui_locales` of the request: language tags, with spaces between them. */
  asked?: string | undefined
  /** The language of the user's account: one tag. */
  user?: string | undefined
  /** The header `Accept-Language`. */
  accepted?: string | undefined
}

/**
 * The locale to speak in: that of the first language that is wanted and that there are words in, be it in another country's form
 * (`de-AT` is answered with `de`, `pt` with `pt-BR`); otherwise the fallback.
 */
export function chooseLocale(
  locales: readonly string[],
  { asked = '', user = '', accepted = '' }: Languages,
  fallback: string,
): string {
  // Some keep `pt_BR` with a user.
  const wanted = [
    ...askedTags(asked),
    ...askedTags(user.replaceAll('_', '-')),
    ...acceptedTags(accepted),
  ]
  for (const tag of wanted) {
    const found = bestOf(locales, tag)
    if (found !== undefined) return found
  }
  return fallback
}

/** What begins like the tag (RFC 4647, section 3.4) and is written like it, then what is written like it, then what begins like it. */
function bestOf(locales: readonly string[], tag: string): string | undefined {
  const script = writingOf(tag)
  const writings = writingsOf(locales)
  const written = locales.filter((_, at) => script !== undefined && writings[at] === script)
  return longestStart(written, tag) ?? written[0] ?? longestStart(locales, tag)
}

function longestStart(locales: readonly string[], tag: string): string | undefined {
  const starts = (locale: string) => `${tag}-`.toLowerCase().startsWith(`${locale}-`.toLowerCase())
  return locales.filter(starts).toSorted((one, other) => other.length - one.length)[0]
}

const known = new WeakMap<readonly string[], (string | undefined)[]>()

/** Told once for a list, which does not change. */
function writingsOf(locales: readonly string[]): (string | undefined)[] {
  const writings = known.get(locales) ?? locales.map(writingOf)
  known.set(locales, writings)
  return writings
}

/** Language and script, such as `zh-Hant` for `zh-TW`. `undefined`: it is no language tag. */
function writingOf(tag: string): string | undefined {
  try {
    const { language, script } = new Intl.Locale(tag).maximize()
    return `${language}-${script}`
  } catch (error) {
    if (error instanceof RangeError) return undefined
    throw error
  }
}
