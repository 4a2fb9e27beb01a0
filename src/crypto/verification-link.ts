/** The query of a mailed verification link (4.6): how it is written, and how it is read after mail programs have changed it. */
import {
  appendParameters,
  REQUEST_PARAMETERS,
  type RequestParameters,
} from '../contract/parameters.ts'

/** The parts of a verification link (4.6), which the forms on its page repeat. */
export interface VerificationLink {
  token: string
  parameters: RequestParameters
  authorizeSig: string
}

/** The parameters of a mailed verification link. */
export const SIGNED: readonly string[] = [
  'token',
  ...REQUEST_PARAMETERS.map(([, name]) => name),
  'authorize_sig',
]

/** Whether some parsers read the name as one of these parameters, such as `state[]`. */
export function isBracketed(name: string): boolean {
  return SIGNED.some((signed) => name.startsWith(`${signed}[`))
}

export function linkQuery({ token, parameters, authorizeSig }: VerificationLink): string {
  const query = appendParameters(new URLSearchParams({ token }), parameters)
  query.set('authorize_sig', authorizeSig)
  return query.toString()
}

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
  // These two consist of base64url characters only: others are not from the mailed link.
  if (name !== 'token' && name !== 'authorize_sig') return pair
  return `${name}=${(decode(value) ?? value).replaceAll(/[^\w-]/g, '')}`
}

/** Decodes a name or a value in a query or a form. `undefined`: it is not percent-encoded UTF-8. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
