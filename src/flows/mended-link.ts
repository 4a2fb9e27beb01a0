/** The parameters whose characters are known; nothing else in them was ever mailed. */
const BASE64URL = new Set(['token', 'authorize_sig'])

/**
 * The readings of a mailed link's query, as it is first: mail programs leave `&amp;` in, break lines and take the punctuation after
 * a link for its end. Which one was mailed is for the token and the signature to say.
 */
export function readingsOf(query: string): string[] {
  const mended = query
    .replaceAll(/&(?:amp;)+/gi, '&')
    .replaceAll(/(?:(?:%0d|%0a|%09|[\r\n\t])(?:%20|\+| )*)+/gi, '')
    .split('&')
    .map(mendedPair)
    .join('&')
  return [...new Set([query, mended])]
}

function mendedPair(pair: string): string {
  const at = pair.indexOf('=')
  const name = pair.slice(0, at)
  return BASE64URL.has(name) ? `${name}=${decoded(pair.slice(at)).replaceAll(/[^\w-]/g, '')}` : pair
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
