import { AccountFlowsError } from '../errors.ts'
import type {
  RequestOrder,
  ResetTokenStore,
  Revoked,
  TokenStore,
  VerificationTokenStore,
} from '../ports/index.ts'
import { isLater } from '../ports/request-order.ts'
import type { Records } from './records.ts'
import { firstWanted } from './scan.ts'
import { type Table, tableOf } from './table.ts'
import {
  advanced,
  claimed,
  claimedOf,
  expired,
  invalidated,
  KINDS,
  newRecord,
  tokenOf,
  type TokenRecord,
  used,
} from './tokens.ts'

type Tokens = Table<TokenRecord>

/** So many are read; other limits keep an account below it. */
const MOST = 1_000
/** How often another one of the same user is issued first. */
const MOST_TURNS = 100

export function resetTokens(records: Records, kind: typeof KINDS.resetTokens): ResetTokenStore {
  const tokens = tableOf(records, kind)
  return {
    ...finding(tokens),

    async issue(token) {
      const record = { ...newRecord(token), liveOf: token.userId }
      for (let turn = 0; turn < MOST_TURNS; turn += 1) {
        if (await isSuperseded(tokens, token)) return false
        if (await tokens.insert(record)) return true
        await endLive(tokens, token.userId, (before) =>
          isLater(before, token) ? before : invalidated(before, token.createdAt),
        )
      }
      throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'too many links of one user at once')
    },

    async revoke(which, at) {
      if ('id' in which) return changeAll(tokens, [which.id], (record) => expired(record, at))
      const { userId, upTo } = which
      await endLive(tokens, userId, (record) => {
        if (!upTo) return expired(record, at)
        return isLater(record, upTo) ? record : invalidated(record, at)
      })
    },

    async claim(tokenHash, claim) {
      const [found] = await tokens.find({ equal: { tokenHash }, limit: 1 })
      if (!found) return undefined
      return tokens.change(found, (record) => {
        const next = record && claimed(record, claim)
        return { next: next ?? record, answer: next && claimedOf(next) }
      })
    },

    async takeUnfinished(at, leaseUntil) {
      const below = new Date(at.getTime() + 1)
      const left = await tokens.find({ by: 'leaseUntil', below, limit: MOST })
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

    advance: (id, step, at) =>
      tokens.change(id, (record) => {
        const next = record && advanced(record, step, at)
        return { next: next ?? record, answer: next && tokenOf(next) }
      }),
  }
}

export function verificationTokens(records: Records): VerificationTokenStore {
  const tokens = tableOf(records, KINDS.verificationTokens)
  return {
    ...finding(tokens),
    issue: async (token) => void (await tokens.insert(newRecord(token))),

    async revoke(which, at) {
      await changeAll(tokens, await revokedBy(tokens, which), (record) => expired(record, at))
    },

    async use({ id, userId, email }, at) {
      const change = (record: TokenRecord) =>
        record.id === id ? used(record, at) : expired(record, at)
      const isOther = (other: TokenRecord) => other.id !== id && other.email === email
      await changeAll(tokens, [id, ...(await ofUser(tokens, userId, isOther))], change)
    },

    async latestExpiry(at) {
      const from = new Date(at.getTime() + 1)
      const latest = { by: 'expiresAt', from, isDescending: true } as const
      const [last] = await firstWanted(tokens, latest, 1, ({ usedAt }) => !usedAt)
      return last?.expiresAt
    },
  }
}

function finding(tokens: Tokens): TokenStore {
  return {
    async find(tokenHash) {
      const [found] = await tokens.find({ equal: { tokenHash }, limit: 1 })
      return found && tokenOf(found)
    },

    async ofUser(userId, limit) {
      const newest = { equal: { userId }, by: 'createdAt', isDescending: true } as const
      return (await firstWanted(tokens, newest, limit, () => true)).map(tokenOf)
    },
  }
}

/** Whether a later one was issued, whatever became of that. */
async function isSuperseded(tokens: Tokens, order: RequestOrder & { userId: string }) {
  const { userId, requestedAt } = order
  const query = { equal: { userId }, by: 'requestedAt', from: requestedAt, limit: MOST } as const
  return (await tokens.find(query)).some((other) => isLater(other, order))
}

/** Of the live token of a user. A damaged one keeps no place. */
async function endLive(tokens: Tokens, userId: string, end: (record: TokenRecord) => TokenRecord) {
  for (const { id, record } of await tokens.findAll({ equal: { liveOf: userId }, limit: 1 })) {
    if (record) await changeAll(tokens, [record], end)
    else await tokens.remove(id)
  }
}

async function revokedBy(tokens: Tokens, which: Revoked): Promise<(string | TokenRecord)[]> {
  if ('id' in which) return [which.id]
  const { userId, upTo } = which
  return ofUser(
    tokens,
    userId,
    ({ mailJobId, attempt }) => !upTo || (mailJobId === upTo.mailJobId && attempt <= upTo.attempt),
  )
}

/** All of a user, newest first. */
const ofUser = (tokens: Tokens, userId: string, isWanted: (record: TokenRecord) => boolean) =>
  firstWanted(
    tokens,
    { equal: { userId }, by: 'createdAt', isDescending: true },
    Number.MAX_SAFE_INTEGER,
    isWanted,
  )

/** Each for itself; one that is gone is left. */
async function changeAll(
  tokens: Tokens,
  all: (string | TokenRecord)[],
  change: (record: TokenRecord) => TokenRecord,
) {
  await Promise.all(
    all.map((which) =>
      tokens.change(which, (record) => ({ next: record && change(record), answer: undefined })),
    ),
  )
}
