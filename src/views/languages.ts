/** What is known of the language that somebody reads, best first (D24). */
export interface Languages {
  /** `ui_locales` of the request: language tags, with spaces between them. */
  asked?: string | undefined
  /** The language of the user's account: one tag. */
  user?: string | undefined
  /** The header `Accept-Language`. */
  accepted?: string | undefined
}

const MAX_TAGS = 20

/**
 * The locale to speak in: the first that is wanted and that there are words in, be it for the language alone (`de-AT` is
 * answered with `de`); otherwise the fallback.
 */
export function chooseLocale(
  locales: readonly string[],
  { asked = '', user = '', accepted = '' }: Languages,
  fallback: string,
): string {
  const wanted = [...asked.split(' ', MAX_TAGS), user, ...acceptedTags(accepted)]
  for (const tag of wanted) {
    const found = bestOf(locales, tag)
    if (found !== undefined) return found
  }
  return fallback
}

/** RFC 4647, section 3.4: the tag, then ever fewer of its parts. */
function bestOf(locales: readonly string[], tag: string): string | undefined {
  const parts = tag.toLowerCase().split('-')
  for (let length = parts.length; length > 0; length -= 1) {
    const prefix = parts.slice(0, length).join('-')
    const found = locales.find((locale) => locale.toLowerCase() === prefix)
    if (found !== undefined) return found
  }
  return undefined
}

/** By weight, those of weight 0 left out (RFC 9110, section 12.5.4). */
function acceptedTags(header: string): string[] {
  return header
    .split(',', MAX_TAGS)
    .map((range) => {
      const [tag = '', weight] = range.trim().split(/\s*;\s*q=/i)
      return { tag, weight: weight === undefined ? 1 : Number(weight) }
    })
    .filter(({ weight }) => weight > 0)
    .sort((one, other) => other.weight - one.weight)
    .map(({ tag }) => tag)
}
