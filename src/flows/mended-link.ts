/** The parameters whose characters are known; nothing else in them was ever mailed. */
const BASE64URL = new Set(['token', 'authorize_sig'])

/**
 * The readings of a mailed link's query, as it is first: mail programs leave `&amp;` in, encode once too often, break lines and
 * take the punctuation after a link for its end. Which one was mailed is for the token and the signature to say.
 */
export function readingsOf(query: string): string[] {
  const spellings = [query, unquoted(query), isEncodedTwice(query) ? decoded(query) : query]
  return [...new Set([query, ...spellings.map(mended)])]
}

// As a whole, or each of the values; otherwise what is encoded is part of one value.
function isEncodedTwice(query: string): boolean {
  return !query.includes('=') || (query.includes('%25') && !/%(?!25|2b)/i.test(query))
}

function mended(query: string): string {
  return query
    .replaceAll(/&(?:amp;)+/gi, '&')
    .replaceAll(/(?:(?:%0d|%0a|%09|[\r\n\t])(?:%20|\+| )*)+/gi, '')
    .split('&')
    .map(mendedPair)
    .join('&')
}

function mendedPair(pair: string): string {
  const [name = '', ...values] = pair.split('=')
  if (values.length === 0) return pair
  // A value of ours has no equals sign; at the end of a quoted-printable line it says that the line goes on.
  const value = values.join('')
  return `${name}=${BASE64URL.has(name) ? decoded(value).replaceAll(/[^\w-]/g, '') : value}`
}

/** Quoted-printable (RFC 2045, 6.7), as in the source of a mail: every equals sign is escaped there, or ends a line. */
function unquoted(query: string): string {
  const joined = query.replaceAll(/=(?:%0d|%0a)+/gi, '')
  return /=(?!3d)/i.test(joined) ? query : joined.replaceAll(/=3d/gi, '=')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
