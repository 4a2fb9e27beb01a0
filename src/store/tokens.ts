/** Tokens of resets, invitations and verifications (2.1, 2.2, 2.6): how a record of one changes. */
import { z } from 'zod'
import type { RequestParameters, Requester } from '../contract/requests.ts'
import { defined, eightDaysAfter, holds, kindOf, type RecordWith } from './kind.ts'
import { toldOf } from './table.ts'

const FIELDS = {
  /** Lower-case hex SHA-256 of the 43 characters of the raw token. */
  tokenHash: 'text',
  userId: 'text',
  /** The address that the link was mailed to; the token is void once the user has another one. */
  email: 'text',
  /** Digest of the password hash that the token was issued for; void once it is another one. */
  passwordDigest: 'text',
  clientId: 'text?',
  redirectUri: 'text?',
  scope: 'text?',
  state: 'text?',
  /** The language of its mail (BCP 47), for the pages that its link opens. `undefined`: it is not known. */
  locale: 'text?',
  /** The login that waits for a verification. `undefined`: none does, or it is no token of a verification. */
  pendingLoginId: 'text?',
  requestedAt: 'time',
  mailJobId: 'text',
  attempt: 'number',
  createdAt: 'time',
  expiresAt: 'time',
  /** When the link did what it is for: the new password was set (effect 2 of 3.3), or the address verified. `undefined`: not yet. */
  usedAt: 'time?',
  /** A reset was decided with it. Always `undefined` for a verification. */
  claimedAt: 'time?',
  /** A newer one took its place, its mail was given up, or its reset was refused in the end. Always `undefined` for a verification. */
  invalidatedAt: 'time?',
  /** All effects of the reset are done. Always `undefined` for a verification. */
  completedAt: 'time?',
  /** The user, while the token is live: one token of a user is. */
  liveOf: 'text?',
  claimedBy: holds<Requester | undefined>('json?'),
  /** From the claim until the password is replaced. */
  newHash: 'text?',
  /** From the claim until the reset is over, one way or the other. */
  leaseUntil: 'time?',
  purgeAt: 'time',
} as const

/** A record of a token, with what is never told. */
export type TokenRecord = RecordWith<typeof FIELDS>

type Hidden = 'tokenHash' | 'liveOf' | 'claimedBy' | 'newHash' | 'leaseUntil' | 'purgeAt'

/**
 * A token of a reset, an invitation or a verification, dead or alive, with the request that it was issued for. Neither the raw token nor its hash is
 * in it (5.5). What it means, `endOf` says, and `linkState` of the flows together with its account.
 */
export interface Token extends Omit<TokenRecord, Hidden | keyof RequestParameters> {
  parameters: RequestParameters
}

/** A token as it is issued. */
export interface NewToken extends Omit<Token, keyof typeof NOTHING_YET> {
  /** Lower-case hex SHA-256 of the 43 characters of the raw token. */
  tokenHash: string
}

/** A reset, or a first password, that is decided; what is left to do is in the record. */
export interface ClaimedReset extends Token {
  claimedAt: Date
  /** Who posted the new password. */
  claimedBy: Requester
  /** `undefined` once the password is replaced and the token is marked used. */
  newHash: string | undefined
}

/** What a reset is to do, written in the step that claims its token. */
export interface ResetClaim {
  newHash: string
  by: Requester
  at: Date
  leaseUntil: Date
}

/**
 * The steps of a claimed reset. `used`: effect 2, which removes the new hash; not after `rejected`. `rejected`: a newer
 * password won, and the token becomes invalidated; not after `used`. `completed`: all five effects are done; only after `used`.
 */
export type ResetStep = 'used' | 'rejected' | 'completed'

const ClaimedBy = z.record(z.string(), z.string().optional()).optional()

const OF_TOKENS = { fields: FIELDS, purgedAt: 'purgeAt', isRemembered: true } as const

const isSound = ({ claimedBy }: TokenRecord) => ClaimedBy.safeParse(claimedBy).success

const ofResets = (name: string) =>
  kindOf({
    ...OF_TOKENS,
    name,
    indexes: [['userId', 'requestedAt'], ['userId', 'createdAt'], ['leaseUntil']],
    unique: ['tokenHash', 'liveOf'],
    // It was live until it ended.
    isWhole: (record) =>
      isSound(record) && (record.liveOf ?? record.claimedAt ?? record.invalidatedAt) !== undefined,
  })

export const KINDS = {
  resetTokens: ofResets('password_reset_tokens'),
  invitationTokens: ofResets('invitation_tokens'),
  verificationTokens: kindOf({
    ...OF_TOKENS,
    name: 'email_verification_tokens',
    indexes: [['userId', 'createdAt'], ['expiresAt']],
    unique: ['tokenHash'],
    isWhole: isSound,
  }),
}

/** Of a token that is issued, whatever the one was that it is made like. */
const NOTHING_YET = {
  usedAt: undefined,
  claimedAt: undefined,
  invalidatedAt: undefined,
  completedAt: undefined,
}

export const newRecord = ({
  parameters: { clientId, redirectUri, scope, state },
  ...token
}: NewToken): TokenRecord => ({
  clientId,
  redirectUri,
  scope,
  state,
  ...token,
  ...NOTHING_YET,
  purgeAt: eightDaysAfter(token.expiresAt),
})

export function tokenOf(record: TokenRecord): Token {
  const { clientId, redirectUri, scope, state, ...all } = record
  const { tokenHash: _, liveOf: _live, claimedBy: _by, newHash: _hash, ...told } = all
  const { leaseUntil: _until, purgeAt: _purge, ...rest } = told
  const parameters = defined({ clientId, redirectUri, scope, state })
  return toldOf(record, { ...rest, parameters })
}

/** `undefined`: no reset was decided with it. */
export function claimedOf(record: TokenRecord): ClaimedReset | undefined {
  const { claimedAt, claimedBy, newHash } = record
  if (!claimedAt) return undefined
  const by = { address: undefined, userAgent: undefined, ...claimedBy }
  return { ...tokenOf(record), claimedAt, claimedBy: by, newHash }
}

export type TokenEnd =
  /** A newer link was asked for, or the account was signed out everywhere. */
  | 'invalidated'
  /** It was used before. */
  | 'used'
  /** Its time was over. */
  | 'expired'

type Times = { expiresAt: Date } & {
  [N in 'usedAt' | 'claimedAt' | 'invalidatedAt']?: Date | undefined
}

/** What ended a token at that time. `undefined`: nothing did; whether its account is as it was is another question. At exactly `expiresAt` it is over. */
export function endOf(token: Times, at: Date): TokenEnd | undefined {
  const { usedAt, claimedAt, invalidatedAt, expiresAt } = token
  if (invalidatedAt) return 'invalidated'
  if (usedAt || claimedAt) return 'used'
  return expiresAt > at ? undefined : 'expired'
}

const isLive = ({ liveOf }: TokenRecord) => liveOf !== undefined

const isOpen = (record: TokenRecord, at: Date) => !endOf(record, at)

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
