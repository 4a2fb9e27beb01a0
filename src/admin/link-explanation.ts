import { CARRIED } from '../ports/carried-query.ts'
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
} from '../ports/index.ts'
import { linkState, type LinkState } from './link-state.ts'
import { linkWords } from './link-words.ts'
import { readPastedLink, type PastedLink } from './pasted-link.ts'
import { isSameCarried } from '../flows/link.ts'

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

const MAX_EVENTS = 500

/** Looks a link up without consuming it: nothing is written. */
export function createLinkExplanation(ports: LinkExplanationPorts) {
  const { users, tokens, audit, authorizeSig, oauthUrl, now } = ports

  const isGenuine = (link: PastedLink) =>
    link.refused.length === 0 &&
    (link.kind === 'password_reset'
      ? isToken(link.token)
      : signatureOf(link, authorizeSig) === 'valid')

  async function factsOf(link: string): Promise<ExplainedFacts> {
    const read = readPastedLink(link, oauthUrl, isGenuine)
    if (!read) return { state: 'not_a_link', altered: [], events: [] }
    const { kind, token: raw } = read
    const signed = kind === 'email_verification' && { signature: signatureOf(read, authorizeSig) }
    const token = isToken(raw) ? await tokens[kind].findHistory(hashToken(raw)) : undefined
    const common = { kind, ...signed, tokenLength: raw.length }
    if (!token) return { ...common, state: 'unknown', altered: [], events: [] }
    const user = await users.findById(token.userId)
    const state = linkState(token, user, now())
    const changed = signed ? alteredIn(signed.signature, read.carried, token.carried) : []
    const altered = [...new Set([...changed, ...read.refused])]
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

function signatureOf(
  { signature, token, carried }: PastedLink,
  { verify }: Pick<AuthorizeSig, 'verify'>,
): Signature {
  if (signature === undefined) return 'missing'
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
