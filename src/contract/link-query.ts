/** Writes and reads the query of a mailed verification link (4.6). */
import { appendParameters, REQUEST_PARAMETERS, type VerificationLink } from './requests.ts'

/** The parameters of the mailed address. */
export const SIGNED: readonly string[] = [
  'token',
  ...REQUEST_PARAMETERS.map(([, name]) => name),
  'authorize_sig',
]

/** Whether some parsers read the name as one of these parameters, such as `state[]`. */
export function isBracketed(name: string): boolean {
  return SIGNED.some((signed) => name.startsWith(`${signed}[`))
}

/** Writes the query of the mailed address (4.6). */
export function linkQuery({ token, parameters, authorizeSig }: VerificationLink): string {
  const query = appendParameters(new URLSearchParams({ token }), parameters)
  query.set('authorize_sig', authorizeSig)
  return query.toString()
}

/** Both consist of base64url characters only; other characters are not from the mailed link. */
const BASE64URL = new Set(['token', 'authorize_sig'])

/**
 * The possible readings of the query of a mailed link, the unchanged one first. Mail programs keep `&amp;`, break lines, and count
 * punctuation after a link as its end. Token and signature show which reading was mailed.
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
  const [name, value] = [pair.slice(0, at), pair.slice(at)]
  return BASE64URL.has(name)
    ? `${name}=${(decode(value) ?? value).replaceAll(/[^\w-]/g, '')}`
    : pair
}

/** Decodes a name or a value in a query or a form. `undefined`: it is not percent-encoded UTF-8. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
