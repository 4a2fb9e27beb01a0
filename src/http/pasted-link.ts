/** Reads a mailed link that an admin pasted. The pages read the same link more strictly; this says what they would refuse. */
import type { RequestParameters } from '../contract/index.ts'
import { linkKinds, MAIL_KINDS, type LinkKind } from '../contract/mail-kinds.ts'
import { parametersFrom, REQUEST_PARAMETERS } from '../contract/parameters.ts'
import type { AuthorizeSig } from '../crypto/keys.ts'
import { isToken } from '../crypto/token.ts'
import { isBracketed, readingsOf, SIGNED } from '../crypto/verification-link.ts'
import { parseFields } from './input.ts'

/** A link of this service, as the admin pasted it. */
export interface PastedLink {
  kind: LinkKind
  token: string
  parameters: RequestParameters
  /** The signature of a verification link (5.4). `undefined`: links of this kind have none. */
  signature: 'valid' | 'invalid' | 'missing' | undefined
  /** Names of the parameters that make its page refuse the link, whatever their values: repeated, in brackets, or not readable. */
  refused: string[]
}

/** The link may be wrapped, in angle brackets, or with `&amp;` left in. `undefined`: it is no link of this service. */
export function readPastedLink(pasted: string, oauthUrl: string, authorizeSig: AuthorizeSig) {
  const text = pasted
    .replace(/\s+/g, '')
    .replace(/^[<("']+|(?<![>)"'.,;])[>)"'.,;]+$/g, '')
    .replaceAll('&amp;', '&')
  if (!URL.canParse(text)) return undefined
  const { origin, pathname, search } = new URL(text)
  const page = ({ page }: { page: string }) => new URL(`${oauthUrl}${page}`).href
  const kind = linkKinds.find((each) => page(MAIL_KINDS[each]) === `${origin}${pathname}`)
  if (!kind) return undefined
  const links = readingsOf(search.slice(1)).map((query) => readQuery(query, kind, authorizeSig))
  const whole = links.filter(({ token }) => isToken(token))
  const isGenuine = ({ refused, signature = 'valid' }: PastedLink) =>
    refused.length === 0 && signature === 'valid'
  return whole.find(isGenuine) ?? whole[0] ?? links[0]
}

function readQuery(search: string, kind: LinkKind, { verify }: AuthorizeSig): PastedLink {
  const query = new URLSearchParams(search)
  const token = query.get('token') ?? ''
  const parameters = parametersFrom(query)
  const isSigned = kind === 'email_verification'
  const signed = query.get('authorize_sig')
  const verified = () => (verify(signed ?? '', token, parameters) ? 'valid' : 'invalid')
  const signature = !isSigned ? undefined : signed === null ? 'missing' : verified()
  // The pages ignore foreign parameters.
  const names = isSigned ? SIGNED : ['token']
  const unread = names.filter((name) => !parseFields(search, (each) => each === name))
  const bracketed = isSigned ? [...query.keys()].filter(isBracketed) : []
  return { kind, token, parameters, signature, refused: [...new Set([...unread, ...bracketed])] }
}

/** Names of the parameters that changed since the mail, or make the page refuse the link. */
export function alteredIn(link: PastedLink, mailed: RequestParameters): string[] {
  const { signature, parameters, refused } = link
  if (signature === undefined) return refused
  const changed = REQUEST_PARAMETERS.filter(([field]) => parameters[field] !== mailed[field])
  const names: string[] = changed.map(([, name]) => name)
  // If nothing else changed, the signature itself did.
  if (signature !== 'valid' && names.length === 0) names.push('authorize_sig')
  return [...new Set([...names, ...refused])]
}
