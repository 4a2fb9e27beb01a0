/** Tokens of resets, invitations and verifications (2.1, 2.2, 2.6): what their records hold. */
import type { TokenEnd } from '../contract/audit.ts'
import { z } from 'zod'
import type { Requester } from '../contract/parameters.ts'
import { defined, eightDaysAfter, holds, kindOf, type RecordWith } from './kind.ts'
import { madeFrom } from './table.ts'

/** A verification sets none of the fields from `claimedAt` to `leaseUntil`. */
const FIELDS = {
  /** Lower-case hex SHA-256 of the raw token. */
  tokenHash: 'text',
  userId: 'text',
  /** Where the link was mailed. The token is void if the user's address changes. Empty: to the other address with `addressId` of a login. */
  email: 'text',
  addressId: 'text?',
  /** Digest of the password hash at the time of issue. The token is void if the hash changes. */
  passwordDigest: 'text',
  clientId: 'text?',
  redirectUri: 'text?',
  scope: 'text?',
  state: 'text?',
  /** The language of the mail (BCP 47), for the pages that its link opens. */
  locale: 'text?',
  /** The login that waits for a verification. */
  pendingLoginId: 'text?',
  requestedAt: 'time',
  mailJobId: 'text',
  attempt: 'number',
  createdAt: 'time',
  expiresAt: 'time',
  /** When the link did its work: the new password was set (effect 2 of 3.3), or the address was verified. */
  usedAt: 'time?',
  /** When it was used to decide a reset. */
  claimedAt: 'time?',
  /** When a newer one replaced it, its mail was given up, or its reset was refused in the end. */
  invalidatedAt: 'time?',
  completedAt: 'time?',
  /** The user's id while the token is live. It is unique, so a user has one live token. */
  liveOf: 'text?',
  claimedBy: holds<Requester | undefined>('json?'),
  /** Set from the claim until the password is replaced. */
  newHash: 'text?',
  /** Set from the claim until the reset is over, with or without success. */
  leaseUntil: 'time?',
  purgeAt: 'time',
} as const

export type TokenRecord = RecordWith<typeof FIELDS>

/** A token, dead or alive, with its original request, and without its hash (5.5). */
export type Token = ReturnType<typeof tokenOf>

export type NewToken = Omit<Token, keyof typeof NOTHING_YET> & Pick<TokenRecord, 'tokenHash'>

const ClaimedBy = z.record(z.string(), z.string().optional()).optional()

const OF_TOKENS = { fields: FIELDS, purgedAt: 'purgeAt', isRemembered: true } as const

const isSound = ({ claimedBy }: TokenRecord) => ClaimedBy.safeParse(claimedBy).success

/** The tokens of resets and of invitations: a user has one live token. */
export const passwordTokenKind = (name: string) =>
  kindOf({
    ...OF_TOKENS,
    name,
    indexes: [['userId', 'requestedAt'], ['userId', 'createdAt'], ['leaseUntil']],
    unique: ['tokenHash', 'liveOf'],
    // A token is live until it ends.
    isWhole: (record) =>
      isSound(record) && (record.liveOf ?? record.claimedAt ?? record.invalidatedAt) !== undefined,
  })

export const verificationTokenKind = (name: string) =>
  kindOf({
    ...OF_TOKENS,
    name,
    indexes: [['userId', 'createdAt'], ['expiresAt']],
    unique: ['tokenHash'],
    isWhole: isSound,
  })

/** Of an issued token, even if it is modelled on another one. */
const NOTHING_YET = {
  usedAt: undefined,
  claimedAt: undefined,
  invalidatedAt: undefined,
  completedAt: undefined,
}

export function newRecord({ parameters, ...token }: NewToken): TokenRecord {
  const { clientId, redirectUri, scope, state } = parameters
  const carried = { clientId, redirectUri, scope, state }
  return { ...carried, ...token, ...NOTHING_YET, purgeAt: eightDaysAfter(token.expiresAt) }
}

export function tokenOf(record: TokenRecord) {
  const { clientId, redirectUri, scope, state, ...all } = record
  const { tokenHash: _, liveOf: _live, claimedBy: _by, newHash: _hash, ...others } = all
  const { leaseUntil: _until, purgeAt: _purge, ...shown } = others
  const parameters = defined({ clientId, redirectUri, scope, state })
  return madeFrom(record, { ...shown, parameters })
}

/** What ended a token, apart from changes of its account. At exactly `expiresAt` the token is over. */
export function endOf(
  token: Pick<Token, 'usedAt' | 'claimedAt' | 'invalidatedAt' | 'expiresAt'>,
  at: Date,
): TokenEnd | undefined {
  const { usedAt, claimedAt, invalidatedAt, expiresAt } = token
  if (invalidatedAt) return 'invalidated'
  if (usedAt || claimedAt) return 'used'
  return expiresAt > at ? undefined : 'expired'
}
