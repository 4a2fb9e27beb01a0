import { NOBODY, type Requester } from '../contract/parameters.ts'
import { AccountFlowsError } from '../errors.ts'
import { isLater, type RequestOrder } from './outbox-record.ts'
import { firstWanted, type Table } from './table.ts'
import { endOf, newRecord, type NewToken, type Token, tokenOf, type TokenRecord } from './tokens.ts'

type Tokens = Table<TokenRecord>

/** A decided reset, or a decided first password, which `claimedBy` sent. `newHash` is `undefined` once the token is marked used. */
export type ClaimedToken = NonNullable<ReturnType<typeof claimedOf>>

/** The task of a reset, written in the step that claims its token. */
export interface TokenClaim {
  newHash: string
  by: Requester
  at: Date
  leaseUntil: Date
}

/** `used`: effect 2, not after `rejected`. `rejected`: a newer password won; not after `used`. `completed`: only after `used`. */
type ClaimStep = 'used' | 'rejected' | 'completed'

/** The tokens of one user: all, those issued up to this attempt for a request, or all except those for one address. */
type Revoked = { userId: string; upTo?: RequestOrder; exceptAddress?: string | undefined }

/** How many are read; other limits keep an account below it. */
const MAX = 1_000
/** How often `issue` tries, because another token of the same user may come first. */
const MAX_TURNS = 100

/** Tokens of reset links (2.1, 3.1), and of invitations, where the reset sets the first password (2.6, 3.4). */
export function passwordTokens(tokens: Tokens) {
  /** Ends live tokens. Without `upTo` they expire at `at`. With it, tokens of this request and of earlier ones are invalidated. */
  async function revoke({ userId, upTo, exceptAddress }: Revoked, at: Date): Promise<void> {
    const end = (record: TokenRecord) =>
      upTo ? superseded(record, upTo, at) : expired(record, at, exceptAddress)
    for (const { id, record } of await tokens.findAll({ equal: { liveOf: userId }, limit: 1 })) {
      if (record) await tokens.update(record, end)
      // A damaged record would hold the user's place.
      else await tokens.remove(id)
    }
  }

  return {
    ...common(tokens),
    revoke,

    /** Saves a live token and invalidates earlier ones. `false`: a later request or attempt had a token, whatever became of it. */
    async issue(token: NewToken): Promise<boolean> {
      const { userId, requestedAt: from, createdAt } = token
      const since = { equal: { userId }, by: 'requestedAt', from, limit: MAX } as const
      const record = { ...newRecord(token), liveOf: userId }
      for (let turn = 0; turn < MAX_TURNS; turn += 1) {
        if ((await tokens.find(since)).some((other) => isLater(other, token))) return false
        if (await tokens.insert(record)) return true
        await revoke({ userId, upTo: token }, createdAt)
      }
      throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'too many links of one user at once')
    },

    /** The commit point of a reset, for one of concurrent callers. No other process finishes the reset until `leaseUntil`. */
    async claim(token: Pick<Token, 'id'>, { by, at, ...task }: TokenClaim) {
      const claimed = { ...task, liveOf: undefined, claimedAt: at, claimedBy: by }
      const mine = await tokens.take(token, (record) =>
        endOf(record, at) ? undefined : { ...record, ...claimed },
      )
      return claimedOf(mine)
    },

    /** Takes one claimed reset that is not completed and whose lease ran out. Only one caller gets each. */
    async takeUnfinished(at: Date, leaseUntil: Date): Promise<ClaimedToken | undefined> {
      const below = new Date(at.getTime() + 1)
      for (const token of await tokens.find({ by: 'leaseUntil', below, limit: MAX })) {
        const mine = await tokens.take(token, (record) =>
          record.leaseUntil && record.leaseUntil <= at ? { ...record, leaseUntil } : undefined,
        )
        const reset = claimedOf(mine)
        if (reset) return reset
      }
      return undefined
    },

    /** Atomic. A repeated step changes nothing. `undefined`: the token may not take this step. */
    async advance(id: string, step: ClaimStep, at: Date): Promise<Token | undefined> {
      const next = await tokens.take(id, (record) => advanced(record, step, at))
      return next && tokenOf(next)
    },
  }
}

/** `undefined`: no reset was decided with it. */
function claimedOf(record: TokenRecord | undefined) {
  if (!record?.claimedAt) return undefined
  const { claimedAt, newHash } = record
  const claimedBy: Requester = { ...NOBODY, ...record.claimedBy }
  return { ...tokenOf(record), claimedAt, claimedBy, newHash }
}

function advanced(record: TokenRecord, step: ClaimStep, at: Date): TokenRecord | undefined {
  const { claimedAt, usedAt, invalidatedAt, completedAt } = record
  if (!claimedAt) return undefined
  const over = { newHash: undefined, leaseUntil: undefined }
  if (step === 'completed') return usedAt && { ...record, ...over, completedAt: completedAt ?? at }
  if (step === 'rejected')
    return usedAt ? undefined : { ...record, ...over, invalidatedAt: invalidatedAt ?? at }
  return invalidatedAt ? undefined : { ...record, newHash: undefined, usedAt: usedAt ?? at }
}

/** Makes an open token expire at that time, unless it is for this address. */
const expired = (record: TokenRecord, at: Date, exceptAddress?: string): TokenRecord =>
  endOf(record, at) || record.email === exceptAddress ? record : { ...record, expiresAt: at }

/** Invalidates a live token, even if it has expired, unless it is of a later request or attempt. */
const superseded = (record: TokenRecord, by: RequestOrder, at: Date): TokenRecord =>
  record.liveOf === undefined || isLater(record, by)
    ? record
    : { ...record, liveOf: undefined, invalidatedAt: at }

/** Tokens of verification links (2.2, 3.2). All links of a user are valid side by side. */
export function verificationTokens(tokens: Tokens) {
  return {
    ...common(tokens),
    issue: async (token: NewToken): Promise<void> => void (await tokens.insert(newRecord(token))),

    /** Makes the unused ones among these tokens expire at `at`; with `upTo`, only those of one mail job. */
    async revoke({ userId, upTo, exceptAddress }: Revoked, at: Date): Promise<void> {
      const isOfJob = ({ mailJobId, attempt }: TokenRecord) =>
        !upTo || (mailJobId === upTo.mailJobId && attempt <= upTo.attempt)
      const some = (await ofUser(tokens, userId)).filter(isOfJob)
      await tokens.updateAll(some, (record) => expired(record, at, exceptAddress))
    },

    /**
     * Marks some of the user's tokens as used, and returns them as they are then. Each step is atomic: a token that was void before is void
     * in the answer. A token that is issued meanwhile is not among them. The user's other links for the same addresses expire. A repeated
     * call changes no token that is used.
     *
     * @param email - the address that the tokens hold from now on. Left out: their own.
     */
    async use(
      userId: string,
      isProof: (token: TokenRecord) => boolean,
      at: Date,
      email?: string,
    ): Promise<Token[]> {
      const all = await ofUser(tokens, userId)
      const proven = new Set(all.filter(isProof).map(({ email }) => email))
      const end = (record: TokenRecord): TokenRecord => {
        if (!isProof(record)) return expired(record, at)
        return record.usedAt ? record : { ...record, usedAt: at, email: email ?? record.email }
      }
      const some = all.filter((token) => proven.has(token.email))
      const ended = await Promise.all(some.map((token) => tokens.take(token, end)))
      return ended.flatMap((record) => (record && isProof(record) ? tokenOf(record) : []))
    },

    /** Of all unused tokens. `undefined`: all have expired. */
    async latestExpiry(at: Date): Promise<Date | undefined> {
      const from = new Date(at.getTime() + 1)
      const last = { by: 'expiresAt', from, isDescending: true, limit: 1 } as const
      const [token] = await firstWanted(tokens, last, ({ usedAt }) => !usedAt)
      return token?.expiresAt
    },
  }
}

export type TokenStore = ReturnType<typeof common>

/** A record that cannot belong to a valid token counts as absent. */
function common(tokens: Tokens) {
  return {
    async find(tokenHash: string): Promise<Token | undefined> {
      const [found] = await tokens.find({ equal: { tokenHash }, limit: 1 })
      return found && tokenOf(found)
    },

    ofUser: async (userId: string, limit: number): Promise<Token[]> =>
      (await ofUser(tokens, userId, limit)).map(tokenOf),

    /** Makes one token expire at `at`, unless it ended before. */
    expire: (id: string, at: Date) => tokens.update(id, (record) => expired(record, at)),
  }
}

/** Newest first. */
const ofUser = (tokens: Tokens, userId: string, limit = Number.MAX_SAFE_INTEGER) =>
  firstWanted(tokens, { equal: { userId }, by: 'createdAt', isDescending: true, limit })
