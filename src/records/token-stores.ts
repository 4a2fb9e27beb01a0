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
import { type Table, tableOf } from './table.ts'
import {
  advanced,
  claimed,
  claimedOf,
  expired,
  invalidated,
  newRecord,
  tokenKind,
  tokenOf,
  type TokenRecord,
  used,
} from './tokens.ts'

type Tokens = Table<TokenRecord>

/** An account has no more links at a time. */
const MOST = 1_000
/** How often another one of the same user is issued first. */
const MOST_TURNS = 100

export const KINDS = {
  resetTokens: tokenKind('password_reset_tokens'),
  invitationTokens: tokenKind('invitation_tokens'),
  verificationTokens: tokenKind('email_verification_tokens'),
}

export function resetTokens(records: Records, kind: typeof KINDS.resetTokens): ResetTokenStore {
  const tokens = tableOf(records, kind)
  return {
    ...finding(tokens),

    async issue(token) {
      const record = { ...newRecord(token), liveOf: token.userId }
      for (let turn = 0; turn < MOST_TURNS; turn += 1) {
        if (await isSuperseded(tokens, token)) return false
        if (await tokens.insert(record)) return true
        await endLive(tokens, token.userId, token, token.createdAt)
      }
      throw new AccountFlowsError('ERR_STORE_CONTENTION', 'too many links of one user at once')
    },

    async revoke(which, at) {
      if ('userId' in which && which.upTo) return endLive(tokens, which.userId, which.upTo, at)
      await changeAll(tokens, await idsOf(tokens, which), (record) => expired(record, at))
    },

    async claim(tokenHash, claim) {
      const [found] = await tokens.find({ equal: { tokenHash }, limit: 1 })
      if (!found) return undefined
      return tokens.change(found.id, (record) => {
        const next = record && claimed(record, claim)
        return { next: next ?? record, answer: next && claimedOf(next) }
      })
    },

    async takeUnfinished(at, leaseUntil) {
      const below = new Date(at.getTime() + 1)
      const left = await tokens.find({ by: 'leaseUntil', below, limit: MOST })
      for (const { id } of left) {
        const taken = await tokens.change(id, (record) => {
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
      await changeAll(tokens, await idsOf(tokens, which), (record) => expired(record, at))
    },

    async use({ id, userId, email }, at) {
      const change = (record: TokenRecord) =>
        record.id === id ? used(record, at) : expired(record, at)
      const others = await tokens.find({ equal: { userId }, limit: MOST })
      const ids = others.filter((other) => other.email === email).map((other) => other.id)
      await changeAll(tokens, [...new Set([id, ...ids])], change)
    },

    async latestExpiry(at) {
      const from = new Date(at.getTime() + 1)
      const query = { by: 'expiresAt', from, isDescending: true, limit: MOST } as const
      return (await tokens.find(query)).find(({ usedAt }) => !usedAt)?.expiresAt
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
      const query = { equal: { userId }, by: 'createdAt', isDescending: true, limit } as const
      return (await tokens.find(query)).map(tokenOf)
    },
  }
}

/** Whether a later one was issued, whatever became of that. */
async function isSuperseded(tokens: Tokens, order: RequestOrder & { userId: string }) {
  const { userId, requestedAt } = order
  const query = { equal: { userId }, by: 'requestedAt', from: requestedAt, limit: MOST } as const
  return (await tokens.find(query)).some((other) => isLater(other, order))
}

/** Of the live token of a user, unless it is of a later request. A damaged one keeps no place. */
async function endLive(tokens: Tokens, userId: string, order: RequestOrder, at: Date) {
  const query = { equal: { liveOf: userId }, limit: 1 }
  await changeAll(
    tokens,
    (await tokens.find(query)).map(({ id }) => id),
    (record) => (isLater(record, order) ? record : invalidated(record, at)),
  )
  for (const id of await tokens.findDamaged(query)) await tokens.remove(id)
}

async function idsOf(tokens: Tokens, which: Revoked): Promise<string[]> {
  if ('id' in which) return [which.id]
  const { userId, upTo } = which
  const ofUser = await tokens.find({ equal: { userId }, limit: MOST })
  return ofUser
    .filter(
      ({ mailJobId, attempt }) =>
        !upTo || (mailJobId === upTo.mailJobId && attempt <= upTo.attempt),
    )
    .map(({ id }) => id)
}

/** Each for itself; one that is gone is left. */
async function changeAll(
  tokens: Tokens,
  ids: string[],
  change: (record: TokenRecord) => TokenRecord,
) {
  await Promise.all(
    ids.map((id) =>
      tokens.change(id, (record) => ({ next: record && change(record), answer: undefined })),
    ),
  )
}
