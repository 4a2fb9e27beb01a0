import { carriedFrom } from '../carried-query.ts'
import { isToken } from '../crypto/token.ts'
import type { CarriedParameters } from '../ports.ts'
import type { LinkKind } from './link-explanation.ts'
import { isBracketed, SIGNED } from './verification-link.ts'

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

const KINDS = new Map<string, LinkKind>([
  ['/reset-password', 'password_reset'],
  ['/verify-email', 'email_verification'],
])

/**
 * Reads a link out of a mail: wrapped, in angle brackets, with `&amp;` left in, or quoted-printable as in the source of the mail.
 *
 * @param oauthUrl - where links start.
 * @returns `undefined`: it is no link of this service.
 */
export function readPastedLink(pasted: string, oauthUrl: string): PastedLink | undefined {
  const asItIs = readUrl(pasted, oauthUrl)
  if (asItIs && isToken(asItIs.token)) return asItIs
  // A token may begin with 3D; quoted-printable is what is read only then.
  return pasted.includes('=3D') ? readUrl(unquoted(pasted), oauthUrl) : asItIs
}

function readUrl(pasted: string, oauthUrl: string): PastedLink | undefined {
  const text = pasted
    .replace(/\s+/g, '')
    .replace(/^[<("']+|[>)"'.,;]+$/g, '')
    .replaceAll('&amp;', '&')
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const home = new URL(oauthUrl)
  const path = home.pathname.replace(/\/$/, '')
  if (url.origin !== home.origin || !url.pathname.startsWith(path)) return undefined
  const kind = KINDS.get(url.pathname.slice(path.length))
  const query = url.searchParams
  return (
    kind && {
      kind,
      token: query.get('token') ?? '',
      carried: carriedFrom(query),
      signature: query.get('authorize_sig') ?? undefined,
      refused: refusedIn(url.search.slice(1), kind),
    }
  )
}

/** RFC 2045, 6.7. */
function unquoted(text: string): string {
  return text
    .replaceAll(/=[ \t]*\r?\n/g, '')
    .replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
}

// The page of a verification link passes over foreign parameters, that of a reset link reads all (D13, D31).
function refusedIn(search: string, kind: LinkKind): string[] {
  const pairs = search.split('&').filter((pair) => pair !== '')
  const names = pairs.map((pair) => [...new URLSearchParams(pair).keys()].join())
  const refused = names.filter((name, at) => {
    if (kind === 'email_verification') {
      if (isBracketed(name)) return true
      if (!SIGNED.includes(name)) return false
    }
    return names.indexOf(name) !== at || !isReadable(pairs[at] ?? '')
  })
  return [...new Set(refused)]
}

function isReadable(encoded: string): boolean {
  try {
    decodeURIComponent(encoded)
    return true
  } catch {
    return false
  }
}
