/** What all mailed links have in common: their state, what they carry, and how an opened address is read. */
import { hashToken, isToken } from '../crypto/token.ts'
import {
  CARRIED,
  appendCarried,
  type LinkReason,
  type VerificationLink,
} from '../contract/requests.ts'
import type { CarriedParameters, LinkEnd, User, UserStore } from '../contract/index.ts'
import { endOf } from '../store/tokens.ts'
import type { Token, TokenStore } from '../store/index.ts'
import { isUnchanged, isVerified } from './account.ts'
import type { FlowParts } from './parts.ts'

/** The state of a link, by its record and its account. */
export function linkState(
  token: Token,
  account: User | undefined,
  at: Date,
): 'usable' | Exclude<LinkReason, 'unknown'> {
  const end = endOf(token, at)
  if (end === 'used') return 'used'
  // A claimed reset was refused in the end, because the account had changed.
  if (end === 'invalidated') return token.claimedAt ? 'changed' : 'superseded'
  if (!account || !isUnchanged(token, account)) return 'changed'
  return end ?? 'usable'
}

export interface LinkContext {
  carried: CarriedParameters
  /** The language of its mail. */
  locale?: string | undefined
}

export const linkContext = ({ carried, locale }: Token): LinkContext => ({ carried, locale })

export type FoundLink = NonNullable<Awaited<ReturnType<typeof findLink>>>

/** A token with its account and state. With `readCutoffs`, no end of the account is missed. `undefined`: the token is unknown. */
export async function findLink(
  tokens: TokenStore,
  users: UserStore,
  raw: string,
  at: Date,
  readCutoffs?: FlowParts['readCutoffs'],
) {
  const find = async () => (isToken(raw) ? tokens.find(hashToken(raw)) : undefined)
  const first = await find()
  if (!first) return undefined
  // An end voids links and replaces passwords before it moves the cut-offs. So a token that is read after those misses no end.
  const wasEnded = await readCutoffs?.(first.userId)
  const [token, account] = await Promise.all([
    wasEnded ? find() : first,
    users.findById(first.userId),
  ])
  if (!token) return undefined
  // If the record has no end, the account has changed.
  const end: LinkEnd = endOf(token, at) ?? 'account_changed'
  return { token, account, state: linkState(token, account, at), end }
}

/** `used`: its address is verified, by whatever means. A used link whose address is not verified counts as `changed`. */
export function verificationState({ token, account, state }: FoundLink) {
  if (isVerified(token, account)) return 'used'
  return state === 'usable' || state === 'expired' ? state : 'changed'
}

/** To one account, while "This wasn't me" of a mail is good. More may be asked for, and then older links are not found. */
export const MAX_MAILED = 10_000

export const MAX_LINKS = 100

/** Whether the account has a link that can still be used, and that finishes this login, if one is named. */
export async function hasUsableLink(
  tokens: TokenStore,
  account: User,
  at: Date,
  pendingLoginId?: string,
): Promise<boolean> {
  const found = await tokens.ofUser(account.id, MAX_LINKS)
  return found.some(
    (token) =>
      linkState(token, account, at) === 'usable' &&
      (pendingLoginId === undefined || token.pendingLoginId === pendingLoginId),
  )
}

/** The parameters of the mailed address. */
export const SIGNED: readonly string[] = [
  'token',
  ...CARRIED.map(([, name]) => name),
  'authorize_sig',
]

/** Whether some parsers read the name as one of them: `state[]`. */
export function isBracketed(name: string): boolean {
  return SIGNED.some((signed) => name.startsWith(`${signed}[`))
}

/** The query of the mailed address (4.6). */
export function linkQuery({ token, carried, authorizeSig }: VerificationLink): string {
  const query = appendCarried(new URLSearchParams({ token }), carried)
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
