import { AccountFlowsError } from '../errors.ts'
import { isLater, type RequestOrder } from './outbox-record.ts'
import type { Records } from './records.ts'
import { firstWanted, type Table, tableOf } from './table.ts'
import {
  advanced,
  claimed,
  type ClaimedReset,
  claimedOf,
  expired,
  invalidated,
  KINDS,
  newRecord,
  type NewToken,
  type ResetClaim,
  type ResetStep,
  type Token,
  tokenOf,
  type TokenRecord,
} from './tokens.ts'

type Tokens = Table<TokenRecord>

/** One token; all tokens of one user; or those that were issued up to this attempt for a request. */
type Revoked = { id: string; upTo?: undefined } | { userId: string; upTo?: RequestOrder }

/** How many are read; other limits keep an account below it. */
const MAX = 1_000
/** How often `issue` tries again because another token of the same user came first. */
const MAX_TURNS = 100

export type ResetTokenStore = ReturnType<typeof resetTokens>

/** Tokens of reset links (2.1, 3.1), and of invitations, where the reset sets the first password (2.6, 3.4). */
export function resetTokens(records: Records, kind: typeof KINDS.resetTokens) {
  const tokens = tableOf(records, kind)
  return {
    ...finding(tokens),

    /**
     * Saves a live token and invalidates earlier ones. So a user has at most one live token at any moment, even with concurrent callers.
     * `false`: a token of a later request or attempt was issued before, whatever its state is now; nothing changed.
     */
    async issue(token: NewToken): Promise<boolean> {
      const record = { ...newRecord(token), liveOf: token.userId }
      for (let turn = 0; turn < MAX_TURNS; turn += 1) {
        if (await isSuperseded(tokens, token)) return false
        if (await tokens.insert(record)) return true
        await endLive(tokens, token.userId, (before) =>
          isLater(before, token) ? before : invalidated(before, token.createdAt),
        )
      }
      throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'too many links of one user at once')
    },

    /**
     * Makes the live ones among these tokens expire at `at`. Claimed tokens stay. With `upTo` they are invalidated instead, also those of
     * earlier requests.
     */
    async revoke(which: Revoked, at: Date): Promise<void> {
      if ('id' in which)
        return void (await tokens.update(which.id, (record) => expired(record, at)))
      const { userId, upTo } = which
      await endLive(tokens, userId, (record) => {
        if (!upTo) return expired(record, at)
        return isLater(record, upTo) ? record : invalidated(record, at)
      })
    },

    /**
     * The commit point of a reset, in one step: takes a token that is unused, not claimed, not invalidated and not expired. The new
     * password hash is stored with it. Exactly one of concurrent callers gets the token. No other process finishes the reset until
     * `leaseUntil`.
     */
    claim: (token: Pick<Token, 'id'>, claim: ResetClaim): Promise<ClaimedReset | undefined> =>
      tokens.change(token, (record) => {
        const next = record && claimed(record, claim)
        return { next: next ?? record, answer: next && claimedOf(next) }
      }),

    /** Takes one claimed reset that is not completed and whose lease ran out. Only one caller gets each. */
    async takeUnfinished(at: Date, leaseUntil: Date): Promise<ClaimedReset | undefined> {
      const below = new Date(at.getTime() + 1)
      const left = await tokens.find({ by: 'leaseUntil', below, limit: MAX })
      for (const token of left) {
        const taken = await tokens.change(token, (record) => {
          if (!record?.leaseUntil || record.leaseUntil > at)
            return { next: record, answer: undefined }
          return { next: { ...record, leaseUntil }, answer: claimedOf(record) }
        })
        if (taken) return taken
      }
      return undefined
    },

    /**
     * Takes a claimed reset one step on, atomically. A repeated step changes nothing. Returns the token; `undefined`: it may not take this
     * step.
     */
    advance: (id: string, step: ResetStep, at: Date): Promise<Token | undefined> =>
      tokens.change(id, (record) => {
        const next = record && advanced(record, step, at)
        return { next: next ?? record, answer: next && tokenOf(next) }
      }),
  }
}

export type VerificationTokenStore = ReturnType<typeof verificationTokens>

/** Tokens of verification links (2.2, 3.2). All links of a user are valid side by side. */
export function verificationTokens(records: Records) {
  const tokens = tableOf(records, KINDS.verificationTokens)
  return {
    ...finding(tokens),
    issue: async (token: NewToken): Promise<void> => void (await tokens.insert(newRecord(token))),

    /** Makes the unused ones among these tokens expire at `at`; with `upTo`, only those of one mail job. */
    async revoke(which: Revoked, at: Date): Promise<void> {
      const { upTo } = which
      const isOfJob = ({ mailJobId, attempt }: TokenRecord) =>
        !upTo || (mailJobId === upTo.mailJobId && attempt <= upTo.attempt)
      const some = 'id' in which ? [which.id] : await ofUser(tokens, which.userId, isOfJob)
      await tokens.updateAll(some, (record) => expired(record, at))
    },

    /** Sets `usedAt`, and makes the user's other links for this address expire. A repeated call does not change the token. */
    async use({ id, userId, email }: Pick<Token, 'id' | 'userId' | 'email'>, at: Date) {
      const ofAddress = await ofUser(tokens, userId, (token) => token.email === email)
      await tokens.updateAll(ofAddress, (record) => {
        if (record.id !== id) return expired(record, at)
        return record.usedAt ? record : { ...record, usedAt: at }
      })
    },

    /** The latest expiry among all unused tokens. `undefined`: all have expired at `at`. */
    async latestExpiry(at: Date): Promise<Date | undefined> {
      const from = new Date(at.getTime() + 1)
      const last = { by: 'expiresAt', from, isDescending: true, limit: 1 } as const
      const [token] = await firstWanted(tokens, last, ({ usedAt }) => !usedAt)
      return token?.expiresAt
    },
  }
}

export type TokenStore = ReturnType<typeof finding>

/** The methods that all token stores share. A record that cannot belong to a valid token counts as absent. */
function finding(tokens: Tokens) {
  return {
    /** `undefined`: there is no such token, or it was removed eight days after it expired. */
    async find(tokenHash: string): Promise<Token | undefined> {
      const [found] = await tokens.find({ equal: { tokenHash }, limit: 1 })
      return found && tokenOf(found)
    },

    /** The user's tokens, newest first, at most `limit`. */
    ofUser: async (userId: string, limit: number): Promise<Token[]> =>
      (await ofUser(tokens, userId, () => true, limit)).map(tokenOf),
  }
}

/** Whether a later token was issued, whatever its state is now. */
async function isSuperseded(tokens: Tokens, order: RequestOrder & { userId: string }) {
  const { userId, requestedAt } = order
  const query = { equal: { userId }, by: 'requestedAt', from: requestedAt, limit: MAX } as const
  return (await tokens.find(query)).some((other) => isLater(other, order))
}

/** Ends the live token of a user. If its record is damaged, it is removed. */
async function endLive(tokens: Tokens, userId: string, end: (record: TokenRecord) => TokenRecord) {
  for (const { id, record } of await tokens.findAll({ equal: { liveOf: userId }, limit: 1 })) {
    if (record) await tokens.update(record, end)
    else await tokens.remove(id)
  }
}

/** The user's tokens, newest first. */
const ofUser = (
  tokens: Tokens,
  userId: string,
  isWanted: (record: TokenRecord) => boolean,
  limit = Number.MAX_SAFE_INTEGER,
) =>
  firstWanted(tokens, { equal: { userId }, by: 'createdAt', isDescending: true, limit }, isWanted)
