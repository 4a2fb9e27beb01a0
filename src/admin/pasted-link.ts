import type { AuthorizeSig } from '../crypto/keys.ts'
import { isToken } from '../crypto/token.ts'
import { isBracketed, readingsOf, SIGNED, decode } from '../contract/link-query.ts'
import { carriedFrom } from '../contract/requests.ts'
import type { CarriedParameters } from '../contract/index.ts'
import { linkKinds, MAIL_KINDS, type LinkKind } from '../contract/mail-kinds.ts'
import type { AdminParts } from './operation.ts'

/** A link of ours, as somebody pasted it. */
export interface PastedLink {
  kind: LinkKind
  token: string
  carried: CarriedParameters
  /** Of a verification link (5.4). `undefined`: links of its kind have none. */
  signature: 'valid' | 'invalid' | 'missing' | undefined
  /** Names of the parameters for which its page refuses the link, whatever they hold: repeated, in brackets, or not readable. */
  refused: string[]
}

/**
 * Reads a link out of a mail: wrapped, in angle brackets, or with `&amp;` left in.
 *
 * @returns the reading that its page would take. `undefined`: it is no link of this service.
 */
export function readPastedLink(
  pasted: string,
  { oauthUrl, authorizeSig }: Pick<AdminParts, 'oauthUrl' | 'authorizeSig'>,
): PastedLink | undefined {
  const text = pasted
    .replace(/\s+/g, '')
    .replace(/^[<("']+|(?<![>)"'.,;])[>)"'.,;]+$/g, '')
    .replaceAll('&amp;', '&')
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const home = new URL(oauthUrl)
  const path = home.pathname.replace(/\/$/, '')
  if (url.origin !== home.origin || !url.pathname.startsWith(path)) return undefined
  const page = url.pathname.slice(path.length)
  const kind = linkKinds.find((each) => MAIL_KINDS[each].page === page)
  if (!kind) return undefined
  const links = readingsOf(url.search.slice(1)).map((query) => readQuery(query, kind, authorizeSig))
  const whole = links.filter(({ token }) => isToken(token))
  const isGenuine = ({ refused, signature = 'valid' }: PastedLink) =>
    refused.length === 0 && signature === 'valid'
  return whole.find(isGenuine) ?? whole[0] ?? links[0]
}

function readQuery(search: string, kind: LinkKind, { verify }: AuthorizeSig): PastedLink {
  const query = new URLSearchParams(search)
  const token = query.get('token') ?? ''
  const carried = carriedFrom(query)
  const { isSigned } = MAIL_KINDS[kind].link
  const signed = query.get('authorize_sig')
  const judged = () => (verify(signed ?? '', token, carried) ? 'valid' : 'invalid')
  const signature = !isSigned ? undefined : signed === null ? 'missing' : judged()
  return { kind, token, carried, signature, refused: refusedIn(search, isSigned) }
}

// Both pages pass over foreign parameters.
function refusedIn(search: string, isSigned: boolean): string[] {
  const pairs = search.split('&').filter((pair) => pair !== '')
  const names = pairs.map((pair) => [...new URLSearchParams(pair).keys()].join())
  const refused = names.filter((name, at) => {
    if (isSigned && isBracketed(name)) return true
    if (!(isSigned ? SIGNED : ['token']).includes(name)) return false
    return names.indexOf(name) !== at || decode(pairs[at] ?? '') === undefined
  })
  return [...new Set(refused)]
}
