import { carriedFrom } from '../ports/carried-query.ts'
import { isToken } from '../crypto/token.ts'
import { decode } from '../http/form.ts'
import type { CarriedParameters } from '../ports/index.ts'
import { linkKinds, MAIL_KINDS, type LinkKind } from '../ports/mail-kinds.ts'
import { readingsOf, isBracketed, SIGNED } from '../flows/link.ts'

/** A link of ours, as somebody pasted it. */
export interface PastedLink {
  kind: LinkKind
  token: string
  carried: CarriedParameters
  /** Of a verification link (5.4). `undefined`: the link has none. */
  signature: string | undefined
  /** Names of the parameters for which its page refuses the link, whatever they hold: repeated, in brackets, or not readable. */
  refused: string[]
}

/**
 * Reads a link out of a mail: wrapped, in angle brackets, or with `&amp;` left in.
 *
 * @param oauthUrl - where links start.
 * @returns `undefined`: it is no link of this service.
 */
export function readPastedLink(
  pasted: string,
  oauthUrl: string,
  isGenuine: (link: PastedLink) => boolean,
): PastedLink | undefined {
  const links = readUrl(pasted, oauthUrl)
  return links.find(isGenuine) ?? links.find(({ token }) => isToken(token)) ?? links[0]
}

/** As its page would read it, in every way. */
function readUrl(pasted: string, oauthUrl: string): PastedLink[] {
  const text = pasted
    .replace(/\s+/g, '')
    .replace(/^[<("']+|(?<![>)"'.,;])[>)"'.,;]+$/g, '')
    .replaceAll('&amp;', '&')
  if (!URL.canParse(text)) return []
  const url = new URL(text)
  const home = new URL(oauthUrl)
  const path = home.pathname.replace(/\/$/, '')
  if (url.origin !== home.origin || !url.pathname.startsWith(path)) return []
  const page = url.pathname.slice(path.length)
  const kind = linkKinds.find((each) => MAIL_KINDS[each].page === page)
  return kind ? readingsOf(url.search.slice(1)).map((query) => readQuery(query, kind)) : []
}

function readQuery(search: string, kind: LinkKind): PastedLink {
  const query = new URLSearchParams(search)
  return {
    kind,
    token: query.get('token') ?? '',
    carried: carriedFrom(query),
    signature: query.get('authorize_sig') ?? undefined,
    refused: refusedIn(search, kind),
  }
}

// Both pages pass over foreign parameters.
function refusedIn(search: string, kind: LinkKind): string[] {
  const pairs = search.split('&').filter((pair) => pair !== '')
  const names = pairs.map((pair) => [...new URLSearchParams(pair).keys()].join())
  const { isSigned } = MAIL_KINDS[kind].link
  const refused = names.filter((name, at) => {
    if (isSigned && isBracketed(name)) return true
    if (!(isSigned ? SIGNED : ['token']).includes(name)) return false
    return names.indexOf(name) !== at || decode(pairs[at] ?? '') === undefined
  })
  return [...new Set(refused)]
}
