/**
 * What both kinds of mailed links have in common: how they stand, what they carry, and how an address that was opened is read.
 *
 * @module
 */
import { hashToken, isToken } from '../crypto/token.ts'
import { appendCarried, CARRIED } from '../ports/carried-query.ts'
import type {
  CapturedRequest,
  CarriedParameters,
  DeadToken,
  LinkEnd,
  TokenHistories,
  User,
  UserStore,
} from '../ports/index.ts'
import { isStillFor, type IssuedFor } from './account.ts'

/** What is stored of a token, as far as its state goes. */
export interface LinkRecord extends IssuedFor {
  tokenHash: string
  userId: string
  carried: CarriedParameters
  /** The login that waits for it. */
  pendingLoginId?: string | undefined
  expiresAt: Date
  usedAt?: Date | undefined
  /** A reset was decided with it. */
  claimedAt?: Date | undefined
  /** A newer one took its place, its mail was given up, or its reset was refused in the end. */
  invalidatedAt?: Date | undefined
}

/**
 * Why a link does nothing. `unknown`: nobody was ever given it; all others are told to those alone who hold the token.
 * `superseded`: a newer one took its place. `changed`: the account changed since.
 */
export type LinkFault = 'unknown' | 'expired' | 'used' | 'superseded' | 'changed'

/** How a link stands, by its record and its account as they are. */
export function linkState(
  record: LinkRecord,
  account: User | undefined,
  at: Date,
): 'usable' | Exclude<LinkFault, 'unknown'> {
  const { usedAt, claimedAt, invalidatedAt, expiresAt } = record
  if (claimedAt && invalidatedAt) return 'changed'
  if (usedAt || claimedAt) return 'used'
  if (invalidatedAt) return 'superseded'
  if (!account || !isStillFor(record, account)) return 'changed'
  return expiresAt > at ? 'usable' : 'expired'
}

/** What ended a link, for the audit log: of a record that says nothing of an end, its account did. */
export function endOf(
  { usedAt, claimedAt, invalidatedAt, expiresAt }: LinkRecord,
  at: Date,
): LinkEnd {
  if (invalidatedAt) return 'invalidated'
  if (usedAt || claimedAt) return 'used'
  return expiresAt > at ? 'account_changed' : 'expired'
}

/** What the stores of both kinds of tokens tell. */
interface Tokens<Token extends LinkRecord> extends TokenHistories {
  findUsable(tokenHash: string, at: Date): Promise<Token | undefined>
  findDead(tokenHash: string, at: Date): Promise<DeadToken | undefined>
}

export interface FoundLink<Token extends LinkRecord = LinkRecord> {
  record: LinkRecord
  account: User | undefined
  state: ReturnType<typeof linkState>
  /** `undefined`: it is not, whatever its account is. */
  usable: Token | undefined
}

/** A token and its account, and how they stand. `undefined`: there never was one. */
export async function findLink<Token extends LinkRecord>(
  tokens: Tokens<Token>,
  users: UserStore,
  token: string,
  at: Date,
): Promise<FoundLink<Token> | undefined> {
  if (!isToken(token)) return undefined
  const hash = hashToken(token)
  const usable = await tokens.findUsable(hash, at)
  const record = usable ?? (await deadRecord(tokens, hash, at))
  if (!record) return undefined
  const account = await users.findById(record.userId)
  return { record, account, state: linkState(record, account, at), usable }
}

async function deadRecord(
  tokens: Tokens<LinkRecord>,
  tokenHash: string,
  at: Date,
): Promise<LinkRecord | undefined> {
  const dead = await tokens.findDead(tokenHash, at)
  if (!dead) return undefined
  const { passwordDigest = '', reason } = dead
  const isInvalidated = reason === 'invalidated'
  const history = isInvalidated ? await tokens.findHistory(tokenHash) : undefined
  return {
    ...dead,
    tokenHash,
    passwordDigest,
    expiresAt: at,
    usedAt: reason === 'used' ? at : undefined,
    claimedAt: history?.claimedAt,
    invalidatedAt: isInvalidated ? at : undefined,
  }
}

/** What a verification link carries (4.6). */
export interface VerificationLink {
  token: string
  carried: CarriedParameters
  signature: string
}

/** The parameters of the mailed address. */
export const SIGNED: readonly string[] = [
  'token',
  ...CARRIED.map(([, name]) => name),
  'authorize_sig',
]

/** Whether a name is one of them as some parsers read it: `state[]`. */
export function isBracketed(name: string): boolean {
  return SIGNED.some((signed) => name.startsWith(`${signed}[`))
}

/** The four parameters that a link carries (4.6), out of the request that it will finish. */
export function carriedBy({ params }: CapturedRequest): CarriedParameters {
  const carried: CarriedParameters = {}
  if (typeof params['client_id'] === 'string') carried.clientId = params['client_id']
  if (typeof params['redirect_uri'] === 'string') carried.redirectUri = params['redirect_uri']
  if (typeof params['scope'] === 'string') carried.scope = params['scope']
  if (typeof params['state'] === 'string') carried.state = params['state']
  return carried
}

/** The query of the mailed address (4.6). */
export function linkQuery({ token, carried, signature }: VerificationLink): string {
  const query = appendCarried(new URLSearchParams({ token }), carried)
  query.set('authorize_sig', signature)
  return query.toString()
}

/** Absent and empty are two different things. */
export function isSameCarried(a: CarriedParameters, b: CarriedParameters): boolean {
  return (
    a.clientId === b.clientId &&
    a.redirectUri === b.redirectUri &&
    a.scope === b.scope &&
    a.state === b.state
  )
}

/** The parameters whose characters are known; nothing else in them was ever mailed. */
const BASE64URL = new Set(['token', 'authorize_sig'])

/**
 * The readings of a mailed link's query, as it is first: mail programs leave `&amp;` in, break lines and take the punctuation after
 * a link for its end. Which one was mailed is for the token and the signature to say.
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
  const name = pair.slice(0, at)
  return BASE64URL.has(name) ? `${name}=${decoded(pair.slice(at)).replaceAll(/[^\w-]/g, '')}` : pair
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
