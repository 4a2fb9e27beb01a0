import type { Db, Filter } from 'mongodb'
import { AccountFlowsError } from '../../errors.ts'
import type { NewToken, RequestOrder, ResetStep, ResetTokenStore } from '../../ports/index.ts'
import { endOf } from '../../ports/token-end.ts'
import type { Forgetful } from '../state/forget-account.ts'
import { openCollection, readable } from './collection.ts'
import { reached, text, time } from './conditions.ts'
import { DUPLICATE_KEY, writeErrors } from './errors.ts'
import { forgetDocuments } from './forget.ts'
import { type NamedIndex, storedPart, type StoredPart } from './indexes.ts'
import { toRequesterFields } from './requester.ts'
import { isAfter, type RequestFields, tokensAfter } from './request-order.ts'
import { together } from './together.ts'
import {
  fromTokenDocument,
  isClaimed,
  isWholeReset,
  type ResetTokenDocument,
  toClaimedReset,
  toTokenDocument,
} from './token-document.ts'
import { isInTime, mongoTokens, revoked, tokenIndexes } from './tokens.ts'

const oneLivePerUser: NamedIndex = {
  name: 'one_live_per_user',
  key: { user_id: 1 },
  unique: true,
  partialFilterExpression: { live: true },
}
/** `issue` looks for what was asked for later. */
const latestRequest: NamedIndex = {
  name: 'latest_request',
  key: { user_id: 1, requested_at: -1 },
}
const unfinished: NamedIndex = { name: 'unfinished', key: { lease_until: 1 }, sparse: true }
const MAX_ATTEMPTS = 100

/** `password_reset_tokens` on MongoDB. */
export function mongoResetTokens(db: Db): ResetTokenStore & StoredPart & Forgetful {
  const collection = openCollection<ResetTokenDocument>(db, 'password_reset_tokens')

  const invalidate = together(async (requests: (RequestOrder & { userId: string; at: Date })[]) => {
    const userIds = requests.map(({ userId }) => userId)
    const live = await collection
      .find({ user_id: { $in: userIds }, live: true }, { projection: { user_id: 1 } })
      .toArray()
    const concerned = requests.filter(({ userId }) => live.some((each) => each.user_id === userId))
    if (concerned.length > 0)
      await collection.bulkWrite(
        concerned.map((request) => ({ updateMany: invalidation(request) })),
        { ordered: false },
      )
    return requests
  })

  async function invalidateLive(userId: string, request: RequestOrder, at: Date) {
    await invalidate({ ...request, userId: text(userId), at: time(at) })
  }

  /** Whether each was inserted; not so beside a live one of its user, or after one of a later request. */
  const inserted = together(async (documents: ResetTokenDocument[]) => {
    const others = await collection
      .find({ $or: documents.map(notBefore) })
      .project<RequestFields>({ user_id: 1, requested_at: 1, mail_job_id: 1, attempt: 1 })
      .toArray()
    const isLast = (document: ResetTokenDocument) =>
      !others.some((other) => other.user_id === document.user_id && isAfter(other, document))
    const beside = new Set(await besideLive(documents.filter(isLast)))
    return documents.map((document) => {
      if (!isLast(document)) return 'superseded'
      return beside.has(document._id) ? 'beside' : 'inserted'
    })
  })

  /** Inserts those that it can, and answers the ids of the others: their users have a live one. */
  async function besideLive(documents: ResetTokenDocument[]): Promise<string[]> {
    if (documents.length === 0) return []
    try {
      await collection.insertMany(documents, { ordered: false })
      return []
    } catch (error) {
      return writeErrors(error).map(({ code, index, errmsg }) => {
        if (code !== DUPLICATE_KEY || !errmsg.includes(oneLivePerUser.name)) throw error
        return documents[index]?._id ?? ''
      })
    }
  }

  return {
    ...storedPart(collection, [...tokenIndexes, latestRequest, oneLivePerUser, unfinished]),

    forget: (userId) =>
      forgetDocuments(collection, { user_id: text(userId) }, { lease_until: { $exists: true } }),

    ...mongoTokens(db, collection.collectionName, isWholeReset),

    async issue(token) {
      const document = toLiveDocument(token)
      // Each turn that fails is a turn in which another caller's token was issued.
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const outcome = await inserted(document)
        if (outcome !== 'beside') return outcome === 'inserted'
        await invalidateLive(token.userId, token, token.createdAt)
      }
      throw new AccountFlowsError(
        'ERR_STORE_CONTENTION',
        'Too many reset tokens are being issued for one user',
      )
    },

    async revoke(which, at) {
      if ('userId' in which && which.upTo) return invalidateLive(which.userId, which.upTo, at)
      await collection.updateMany(
        { ...revoked(which), live: true, ...isInTime(at) },
        { $set: { expires_at: at } },
      )
    },

    async claim(tokenHash, { newHash, by, at, leaseUntil }) {
      const claimed = {
        claimed_at: time(at),
        claimed_by: toRequesterFields(by),
        new_hash: text(newHash),
        lease_until: time(leaseUntil),
      }
      const token = await collection.findOne({ token_hash: text(tokenHash), ...isInTime(at) })
      if (!token || !isWholeReset(token) || endOf(fromTokenDocument(token), at)) return undefined
      const document = await collection.findOneAndUpdate(
        { _id: token._id, live: true, ...isInTime(at) },
        { $set: claimed, $unset: { live: true } },
        { returnDocument: 'after' },
      )
      return document ? toClaimedReset(document) : undefined
    },

    async takeUnfinished(at, leaseUntil) {
      const left = collection.find({ lease_until: reached(at) }).sort({ lease_until: 1 })
      for await (const { _id } of readable(left, isClaimed)) {
        const document = await collection.findOneAndUpdate(
          { _id, lease_until: reached(at) },
          { $set: { lease_until: time(leaseUntil) } },
          { returnDocument: 'after' },
        )
        if (document) return toClaimedReset(document)
      }
      return undefined
    },

    async advance(id, step, at) {
      const { from, sets, unset } = STEPS[step]
      const document = await collection.findOneAndUpdate(
        { _id: text(id), claimed_at: { $type: 'date' }, ...from },
        { $set: { [sets]: time(at) }, $unset: unset },
        { returnDocument: 'after' },
      )
      // Once set, a time never changes, so that a second look is as good as one step.
      const taken = document ?? (await collection.findOne({ _id: id, [sets]: { $type: 'date' } }))
      return taken && isWholeReset(taken) ? fromTokenDocument(taken) : undefined
    },
  }
}

interface Step {
  from: Filter<ResetTokenDocument>
  sets: 'used_at' | 'invalidated_at' | 'completed_at'
  unset: { new_hash?: true; lease_until?: true }
}

const isNull = { $type: 'null' } as const

const STEPS: Record<ResetStep, Step> = {
  used: {
    from: { used_at: isNull, invalidated_at: isNull },
    sets: 'used_at',
    unset: { new_hash: true },
  },
  rejected: {
    from: { used_at: isNull, invalidated_at: isNull },
    sets: 'invalidated_at',
    unset: { new_hash: true, lease_until: true },
  },
  completed: {
    from: { used_at: { $type: 'date' }, completed_at: isNull },
    sets: 'completed_at',
    unset: { lease_until: true },
  },
}

function notBefore({ user_id, requested_at }: ResetTokenDocument) {
  return { user_id, requested_at: { $gte: requested_at } }
}

function toLiveDocument(token: NewToken): ResetTokenDocument {
  return {
    ...toTokenDocument(token),
    live: true,
    claimed_at: null,
    invalidated_at: null,
    completed_at: null,
  }
}

/** A damaged record without the time is no reason to keep a token alive. */
function invalidation(request: RequestOrder & { userId: string; at: Date }) {
  return {
    filter: { user_id: request.userId, live: true as const, $nor: [tokensAfter(request)] },
    update: { $set: { invalidated_at: request.at }, $unset: { live: true as const } },
  }
}
