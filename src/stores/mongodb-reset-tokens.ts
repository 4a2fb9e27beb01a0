import type { Db } from 'mongodb'
import { AccountFlowsError } from '../errors.ts'
import type { ClaimedReset, ResetTokenStore } from '../ports.ts'
import { openCollection } from './mongodb-collection.ts'
import { hasTypes, text, time } from './mongodb-conditions.ts'
import { isDuplicateKey } from './mongodb-errors.ts'
import { createIndexes, type NamedIndex } from './mongodb-indexes.ts'
import {
  fromTokenDocument,
  optionalTokenTypes,
  type TokenDocument,
  tokenIndexes,
  tokenTypes,
  toTokenDocument,
} from './mongodb-token-document.ts'

interface ResetTokenDocument extends TokenDocument {
  /** Only while nobody used, claimed or invalidated it; the unique index is on this. */
  live?: true
  claimed_at: Date | null
  invalidated_at: Date | null
  completed_at: Date | null
  /** From the claim until the password is replaced. */
  new_hash?: string
  /** From the claim until the reset is over, one way or the other. */
  lease_until?: Date
}

const oneLivePerUser: NamedIndex = {
  name: 'one_live_per_user',
  key: { user_id: 1 },
  unique: true,
  partialFilterExpression: { live: true },
}
const unfinished: NamedIndex = { name: 'unfinished', key: { lease_until: 1 }, sparse: true }

const isLive = {
  live: true as const,
  ...hasTypes(
    {
      ...tokenTypes,
      live: 'bool',
      claimed_at: 'null',
      used_at: 'null',
      invalidated_at: 'null',
      completed_at: 'null',
    },
    optionalTokenTypes,
  ),
}
const isClaimed = hasTypes(
  {
    ...tokenTypes,
    claimed_at: 'date',
    used_at: ['date', 'null'],
    invalidated_at: 'null',
    completed_at: 'null',
    lease_until: 'date',
  },
  { ...optionalTokenTypes, new_hash: 'string' },
)
const MAX_ATTEMPTS = 100

/** `password_reset_tokens` on MongoDB (D4, D5, D6). */
export function mongoResetTokens(db: Db): ResetTokenStore & { start(): Promise<void> } {
  const collection = openCollection<ResetTokenDocument>(db, 'password_reset_tokens')

  async function invalidateLive(userId: string, at: Date) {
    await collection.updateMany(
      { user_id: text(userId), live: true },
      { $set: { invalidated_at: time(at) }, $unset: { live: true } },
    )
  }

  async function isInserted(document: ResetTokenDocument) {
    try {
      await collection.insertOne(document)
      return true
    } catch (error) {
      if (isDuplicateKey(error) && error.message.includes(oneLivePerUser.name)) return false
      throw error
    }
  }

  return {
    async start() {
      await createIndexes(collection, [...tokenIndexes, oneLivePerUser, unfinished])
    },

    async issue(token) {
      const document: ResetTokenDocument = {
        ...toTokenDocument(token),
        live: true,
        claimed_at: null,
        invalidated_at: null,
        completed_at: null,
      }
      // Each turn that fails is a turn in which another caller's token was issued.
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        await invalidateLive(token.userId, token.createdAt)
        if (await isInserted(document)) return
      }
      throw new AccountFlowsError(
        'ERR_STORE_CONTENTION',
        'Too many reset tokens are being issued for one user',
      )
    },

    invalidateLive,

    async findUsable(tokenHash, at) {
      const document = await collection.findOne({
        token_hash: text(tokenHash),
        expires_at: { $gt: time(at) },
        ...isLive,
      })
      return document ? fromTokenDocument(document) : undefined
    },

    async claim(tokenHash, newHash, at, leaseUntil) {
      const document = await collection.findOneAndUpdate(
        { token_hash: text(tokenHash), expires_at: { $gt: time(at) }, ...isLive },
        {
          $set: { claimed_at: at, new_hash: text(newHash), lease_until: time(leaseUntil) },
          $unset: { live: true },
        },
        { returnDocument: 'after' },
      )
      return document ? toClaimedReset(document) : undefined
    },

    async takeUnfinished(at, leaseUntil) {
      const document = await collection.findOneAndUpdate(
        { lease_until: { $lte: time(at) }, ...isClaimed },
        { $set: { lease_until: time(leaseUntil) } },
        { sort: { lease_until: 1 }, returnDocument: 'after' },
      )
      return document ? toClaimedReset(document) : undefined
    },

    async markUsed(id, at) {
      const marked = await collection.findOneAndUpdate(
        {
          _id: text(id),
          claimed_at: { $type: 'date' },
          used_at: { $type: 'null' },
          invalidated_at: { $type: 'null' },
        },
        { $set: { used_at: time(at) }, $unset: { new_hash: true } },
        { returnDocument: 'after' },
      )
      // Once set, `used_at` never changes, so that a second look is as good as one step.
      const document = marked ?? (await collection.findOne({ _id: id, used_at: { $type: 'date' } }))
      if (!document?.used_at) throw new Error(`No claimed reset has the id ${id}`)
      return document.used_at
    },

    async reject(id, at) {
      await collection.updateOne(
        { _id: text(id), used_at: { $type: 'null' }, lease_until: { $type: 'date' } },
        { $set: { invalidated_at: time(at) }, $unset: { new_hash: true, lease_until: true } },
      )
    },

    async complete(id, at) {
      await collection.updateOne(
        { _id: text(id), used_at: { $type: 'date' }, completed_at: { $type: 'null' } },
        { $set: { completed_at: time(at) }, $unset: { lease_until: true } },
      )
    },
  }
}

function toClaimedReset(document: ResetTokenDocument): ClaimedReset {
  return {
    ...fromTokenDocument(document),
    newHash: document.new_hash,
    usedAt: document.used_at ?? undefined,
  }
}
