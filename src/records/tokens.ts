/** Tokens of resets, invitations and verifications (2.1, 2.2, 2.6): how a record of one changes. */
import { z } from 'zod'
import type {
  CarriedParameters,
  ClaimedReset,
  NewToken,
  Requester,
  ResetClaim,
  ResetStep,
  Token,
} from '../ports/index.ts'
import { endOf } from '../ports/token-end.ts'
import { eightDaysAfter } from '../ports/week.ts'
import { type Definition, kindOf } from './kind.ts'

type Carried = { [N in keyof CarriedParameters]-?: string | undefined }

/** A record of a token, with what is never told. */
export interface TokenRecord extends Omit<Token, 'carried'>, Carried {
  tokenHash: string
  /** The user, while the token is live: one token of a user is. */
  liveOf: string | undefined
  claimedBy: Requester | undefined
  /** From the claim until the password is replaced. */
  newHash: string | undefined
  /** From the claim until the reset is over, one way or the other. */
  leaseUntil: Date | undefined
  purgeAt: Date
}

/** It was live until it ended. */
const hasState = ({ liveOf, claimedAt, invalidatedAt }: TokenRecord) =>
  [liveOf, claimedAt, invalidatedAt].some((one) => one !== undefined)

const Requester = z.record(z.string(), z.string().optional()).optional()

type TokenKind = Pick<Definition<TokenRecord>, 'indexes' | 'unique' | 'isWhole'>

const tokenKind = (name: string, { isWhole = () => true, ...of }: TokenKind) =>
  kindOf<TokenRecord>({
    name,
    ...of,
    isWhole: (record) => Requester.safeParse(record.claimedBy).success && isWhole(record),
    fields: {
      tokenHash: 'text',
      userId: 'text',
      email: 'text',
      passwordDigest: 'text',
      clientId: 'text?',
      redirectUri: 'text?',
      scope: 'text?',
      state: 'text?',
      locale: 'text?',
      pendingLoginId: 'text?',
      requestedAt: 'time',
      mailJobId: 'text',
      attempt: 'number',
      createdAt: 'time',
      expiresAt: 'time',
      usedAt: 'time?',
      claimedAt: 'time?',
      invalidatedAt: 'time?',
      completedAt: 'time?',
      liveOf: 'text?',
      claimedBy: 'json?',
      newHash: 'text?',
      leaseUntil: 'time?',
      purgeAt: 'time',
    },
    purgedAt: 'purgeAt',
    isRemembered: true,
  })

const OF_RESETS: TokenKind = {
  indexes: [['userId', 'requestedAt'], ['userId', 'createdAt'], ['leaseUntil']],
  unique: ['tokenHash', 'liveOf'],
  isWhole: hasState,
}

export const KINDS = {
  resetTokens: tokenKind('password_reset_tokens', OF_RESETS),
  invitationTokens: tokenKind('invitation_tokens', OF_RESETS),
  verificationTokens: tokenKind('email_verification_tokens', {
    indexes: [['userId', 'createdAt'], ['expiresAt']],
    unique: ['tokenHash'],
  }),
}

export function newRecord({ carried, ...token }: NewToken): TokenRecord {
  return {
    clientId: carried.clientId,
    redirectUri: carried.redirectUri,
    scope: carried.scope,
    state: carried.state,
    locale: undefined,
    pendingLoginId: undefined,
    ...token,
    usedAt: undefined,
    claimedAt: undefined,
    invalidatedAt: undefined,
    completedAt: undefined,
    liveOf: undefined,
    claimedBy: undefined,
    newHash: undefined,
    leaseUntil: undefined,
    purgeAt: eightDaysAfter(token.expiresAt),
  }
}

export function tokenOf(record: TokenRecord): Token {
  const { clientId, redirectUri, scope, state, ...token } = record
  const { tokenHash: _, liveOf: _live, claimedBy: _by, newHash: _hash, ...told } = token
  const { leaseUntil: _until, purgeAt: _purge, ...rest } = told
  const carried = {
    ...(clientId !== undefined && { clientId }),
    ...(redirectUri !== undefined && { redirectUri }),
    ...(scope !== undefined && { scope }),
    ...(state !== undefined && { state }),
  }
  return { ...rest, carried }
}

/** `undefined`: no reset was decided with it. */
export function claimedOf(record: TokenRecord): ClaimedReset | undefined {
  const { claimedAt, claimedBy, newHash } = record
  if (!claimedAt) return undefined
  const by = { address: undefined, userAgent: undefined, ...claimedBy }
  return { ...tokenOf(record), claimedAt, claimedBy: by, newHash }
}

const isLive = ({ liveOf }: TokenRecord) => liveOf !== undefined

const isOpen = (record: TokenRecord, at: Date) => !endOf(tokenOf(record), at)

/** Decided, and not all of its effects are done. */
export const isUnfinished = ({ leaseUntil }: TokenRecord) => leaseUntil !== undefined

/** Nobody can use it from that time on. */
export const expired = (record: TokenRecord, at: Date): TokenRecord =>
  isOpen(record, at) ? { ...record, expiresAt: at } : record

/** A newer one takes its place, also where it has expired. */
export const invalidated = (record: TokenRecord, at: Date): TokenRecord =>
  isLive(record) ? { ...record, liveOf: undefined, invalidatedAt: at } : record

/** `undefined`: it cannot be claimed. */
export function claimed(
  record: TokenRecord,
  { newHash, by, at, leaseUntil }: ResetClaim,
): TokenRecord | undefined {
  if (!isLive(record) || !isOpen(record, at)) return undefined
  return { ...record, liveOf: undefined, claimedAt: at, claimedBy: by, newHash, leaseUntil }
}

/** `undefined`: it may not take this step. */
export function advanced(record: TokenRecord, step: ResetStep, at: Date): TokenRecord | undefined {
  const { claimedAt, usedAt, invalidatedAt, completedAt } = record
  if (!claimedAt) return undefined
  const over = { newHash: undefined, leaseUntil: undefined }
  if (step === 'completed') return usedAt && { ...record, ...over, completedAt: completedAt ?? at }
  if (step === 'rejected')
    return usedAt ? undefined : { ...record, ...over, invalidatedAt: invalidatedAt ?? at }
  return invalidatedAt ? undefined : { ...record, newHash: undefined, usedAt: usedAt ?? at }
}

export const used = (record: TokenRecord, at: Date): TokenRecord =>
  record.usedAt ? record : { ...record, usedAt: at }
