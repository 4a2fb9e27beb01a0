import { carriedFrom } from '../ports/carried-query.ts'
import { isToken } from '../crypto/token.ts'
import { readingsOf, isBracketed, SIGNED, type VerificationLink } from '../flows/link.ts'
import { parseFields, type Fields } from './form.ts'

/**
 * The link in the address that was opened: of the ways to read it the one that was mailed, or else the first. `undefined`: it is
 * none of ours.
 */
export function linkInQuery(
  query: string,
  isGenuine: (link: VerificationLink) => boolean,
): VerificationLink | undefined {
  const links = readingsOf(query).flatMap((each) => linkInForm(parseFields(each, isSigned)) ?? [])
  return links.find(isGenuine) ?? links[0]
}

/** The token of a reset link, likewise; other parameters are ignored. */
export function tokenInQuery(query: string): string | undefined {
  const isOurs = (name: string) => name === 'token'
  const tokens = readingsOf(query).flatMap((each) => parseFields(each, isOurs)?.get('token') ?? [])
  return tokens.find(isToken) ?? tokens[0]
}

/** The link as the forms of our pages repeat it. */
export function linkInForm(fields: Fields | undefined): VerificationLink | undefined {
  const token = fields?.get('token')
  const signature = fields?.get('authorize_sig')
  if (!fields || token === undefined || signature === undefined) return undefined
  // A signed parameter that is repeated is refused by the parser, one that is bracketed here.
  if ([...fields.keys()].some(isBracketed)) return undefined
  return { token, carried: carriedFrom(fields), signature }
}

// Others in the link are ignored: mail programs and campaigns add their own.
function isSigned(name: string): boolean {
  return SIGNED.includes(name) || isBracketed(name)
}
