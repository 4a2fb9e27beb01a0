import type { AuthorizeSig } from '../crypto/authorize-sig.ts'
import { hashToken, isToken } from '../crypto/token.ts'
import type {
  AuditHistory,
  CarriedParameters,
  RecordedEvent,
  TokenHistories,
  TokenHistory,
  User,
  UserStore,
} from '../ports.ts'
import { linkState, type LinkState } from './link-state.ts'
import { linkWords } from './link-words.ts'
import { isSameCarried } from './verification-link.ts'

export type LinkKind = 'password_reset' | 'email_verification'

export type Signature = 'valid' | 'invalid' | 'missing'

/** What a link out of a mail is, and what became of it. */
export interface LinkExplanation {
  kind?: LinkKind
  /** `altered`: alive, and its parameters are not those that were signed; `unknown`: no token of ours, or gone for a week. */
  state: LinkState | 'altered' | 'unknown' | 'not_a_link'
  summary: string
  advice: string
  /** Of a verification link (5.4). */
  signature?: Signature
  /** Names of the parameters that are not as they were mailed. */
  altered: string[]
  token?: TokenHistory
  /** What was recorded about it, oldest first. */
  events: RecordedEvent[]
}

/** What an explanation is put into words from. */
export interface ExplainedFacts extends Omit<LinkExplanation, 'summary' | 'advice'> {
  user?: User
  /** The newest token of the account and kind, where it is another one. */
  newer?: TokenHistory
  /** How many characters the token has. */
  tokenLength?: number
}

export interface LinkExplanationPorts {
  users: Pick<UserStore, 'findById'>
  tokens: Record<LinkKind, TokenHistories>
  audit: AuditHistory
  authorizeSig: Pick<AuthorizeSig, 'verify'>
  /** Where links start. */
  oauthUrl: string
  now(): Date
}

const KINDS: Record<string, LinkKind> = {
  '/reset-password': 'password_reset',
  '/verify-email': 'email_verification',
}
const CARRIED: [field: keyof CarriedParameters, name: string][] = [
  ['clientId', 'client_id'],
  ['redirectUri', 'redirect_uri'],
  ['scope', 'scope'],
  ['state', 'state'],
]
const MAX_EVENTS = 500

/** Looks a link up without consuming it: nothing is written. */
export function createLinkExplanation(ports: LinkExplanationPorts) {
  const { users, tokens, audit, authorizeSig, oauthUrl, now } = ports

  async function factsOf(link: string): Promise<ExplainedFacts> {
    const read = readLink(link, oauthUrl)
    if (!read) return { state: 'not_a_link', altered: [], events: [] }
    const { kind, token: raw, query } = read
    const carried = carriedOf(query)
    const signed = kind === 'email_verification' && {
      signature: signatureOf(query.get('authorize_sig'), raw, carried, authorizeSig),
    }
    const token = isToken(raw) ? await tokens[kind].findHistory(hashToken(raw)) : undefined
    const common = { kind, ...signed, tokenLength: raw.length }
    if (!token) return { ...common, state: 'unknown', altered: [], events: [] }
    const user = await users.findById(token.userId)
    const state = linkState(token, user, now())
    const altered = signed ? alteredIn(signed.signature, carried, token.carried) : []
    const [newest] = await tokens[kind].historiesOf(token.userId, 1)
    return {
      ...common,
      state: state === 'live' && altered.length > 0 ? 'altered' : state,
      altered,
      token,
      ...(user && { user }),
      ...(newest && newest.id !== token.id && { newer: newest }),
      events: await eventsOf(kind, token),
    }
  }

  async function eventsOf(kind: LinkKind, token: TokenHistory): Promise<RecordedEvent[]> {
    const events = await audit.list({ accountId: token.userId, limit: MAX_EVENTS })
    const isAbout = ({ id, type, at }: RecordedEvent) =>
      id.includes(token.mailJobId) || (type.startsWith(kind) && at >= token.createdAt)
    return events.filter(isAbout).sort((a, b) => a.at.getTime() - b.at.getTime())
  }

  return async (link: string): Promise<LinkExplanation> => {
    const facts = await factsOf(link)
    return { ...facts, ...linkWords(facts) }
  }
}

/** A link as it is pasted: wrapped, in angle brackets, with `&amp;` left in. */
function readLink(pasted: string, oauthUrl: string) {
  const text = pasted.replace(/\s+/g, '').replace(/^<|>$/g, '').replaceAll('&amp;', '&')
  if (!URL.canParse(text)) return undefined
  const url = new URL(text)
  const home = new URL(oauthUrl)
  const path = home.pathname.replace(/\/$/, '')
  if (url.origin !== home.origin || !url.pathname.startsWith(path)) return undefined
  const kind = KINDS[url.pathname.slice(path.length)]
  const query = url.searchParams
  return kind && { kind, query, token: query.get('token') ?? '' }
}

function carriedOf(query: URLSearchParams): CarriedParameters {
  const carried: CarriedParameters = {}
  for (const [field, name] of CARRIED) {
    const value = query.get(name)
    if (value !== null) carried[field] = value
  }
  return carried
}

function signatureOf(
  signature: string | null,
  token: string,
  carried: CarriedParameters,
  { verify }: Pick<AuthorizeSig, 'verify'>,
): Signature {
  if (signature === null) return 'missing'
  return verify(signature, token, carried) ? 'valid' : 'invalid'
}

/** Where every parameter is as it was mailed, the signature itself is not. */
function alteredIn(
  signature: Signature,
  carried: CarriedParameters,
  mailed: CarriedParameters,
): string[] {
  if (signature === 'valid' && isSameCarried(carried, mailed)) return []
  const names = CARRIED.filter(([field]) => carried[field] !== mailed[field]).map(
    ([, name]) => name,
  )
  return signature === 'valid' || names.length > 0 ? names : ['authorize_sig']
}
