/** The query of the mailed address of a verification link (4.6): how it is written, and how it is read. */
import { appendParameters, REQUEST_PARAMETERS, type VerificationLink } from './requests.ts'

/** The parameters of the mailed address. */
export const SIGNED: readonly string[] = [
  'token',
  ...REQUEST_PARAMETERS.map(([, name]) => name),
  'authorize_sig',
]

/** Whether some parsers read the name as one of them: `state[]`. */
export function isBracketed(name: string): boolean {
  return SIGNED.some((signed) => name.startsWith(`${signed}[`))
}

/** The query of the mailed address (4.6). */
export function linkQuery({ token, parameters, authorizeSig }: VerificationLink): string {
  const query = appendParameters(new URLSearchParams({ token }), parameters)
  query.set('authorize_sig', authorizeSig)
  return query.toString()
}

/** They consist of these characters alone, so others are no part of the mailed link. */
const BASE64URL = new Set(['token', 'authorize_sig'])

/**
 * The possible readings of the query of a mailed link, the unchanged one first. Mail programs leave `&amp;` in, break lines, and take
 * punctuation after a link for its end. Token and signature show which one was mailed.
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

/** Of a name or a value in a query or a form. `undefined`: it is not percent-encoded UTF-8. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
