import Negotiator from 'negotiator'

const MAX_TAGS = 20
const MAX_KEPT_LENGTH = 100
/** Longer than 20 tags with their weights: what follows is not looked at. */
const MAX_HEADER_LENGTH = 1000

/** A language tag as far as it matters here (BCP 47): anybody may have sent anything. */
const TAG = /^[a-z]{2,8}(?:-[a-z0-9]{1,8}){0,7}$/i

/** The tags of `ui_locales`, best first; what is no tag is left out. */
export function askedTags(uiLocales: string): string[] {
  return uiLocales.split(' ', MAX_TAGS).filter((tag) => TAG.test(tag))
}

/** The tags of `Accept-Language` by weight, without those of weight 0, and without `*`. */
export function acceptedTags(header: string): string[] {
  const headers = { 'accept-language': header.slice(0, MAX_HEADER_LENGTH) }
  const tags = new Negotiator({ headers }).languages()
  return tags.slice(0, MAX_TAGS).filter((tag) => TAG.test(tag))
}

/** As many of the tags as fit into 100 characters, to be kept. `undefined`: none. */
export function keptTags(tags: string[], separator: ' ' | ','): string | undefined {
  let kept: string | undefined
  for (const tag of tags) {
    const longer: string = kept === undefined ? tag : kept + separator + tag
    if (longer.length > MAX_KEPT_LENGTH) break
    kept = longer
  }
  return kept
}
