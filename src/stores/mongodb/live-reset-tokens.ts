import type { Collection } from 'mongodb'
import { AccountFlowsError } from '../../errors.ts'
import type { NewToken, RequestOrder } from '../../ports/index.ts'
import { text, time } from './conditions.ts'
import { duplicatesIn } from './errors.ts'
import type { NamedIndex } from './indexes.ts'
import { isAfter, type RequestFields, tokensAfter } from './request-order.ts'
import { type ResetTokenDocument, toLiveDocument } from './token-document.ts'
import { together } from './together.ts'

const oneLivePerUser: NamedIndex = {
  name: 'one_live_per_user',
  key: { user_id: 1 },
  unique: true,
  partialFilterExpression: { live: true },
}
export const liveIndexes: NamedIndex[] = [
  { name: 'latest_request', key: { user_id: 1, requested_at: -1 } },
  oneLivePerUser,
]

const MAX_ATTEMPTS = 100

type Invalidation = RequestOrder & { userId: string; at: Date }

/** At most one live reset token of each user: that of the latest request. */
export function liveResetTokens(collection: Collection<ResetTokenDocument>) {
  const invalidate = together(async (requests: Invalidation[]) => {
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

  async function invalidateUpTo(userId: string, request: RequestOrder, at: Date): Promise<void> {
    await invalidate({ ...request, userId: text(userId), at: time(at) })
  }

  /** Whether each was inserted; not so beside a live one of its user, or after one of a later request. */
  const inserted = together(async (documents: ResetTokenDocument[]) => {
    const others = await collection
      .find(notBefore(documents))
      .project<RequestFields>({ user_id: 1, requested_at: 1, mail_job_id: 1, attempt: 1 })
      .toArray()
    const isLast = (document: ResetTokenDocument) =>
      !others.some((other) => other.user_id === document.user_id && isAfter(other, document))
    const last = documents.filter(isLast)
    if (last.length === 0) return documents.map(() => 'superseded')
    const insert = collection.insertMany(last, { ordered: false })
    const beside = await duplicatesIn(insert, oneLivePerUser.name)
    return documents.map((document) => {
      if (!last.includes(document)) return 'superseded'
      return beside.has(last.indexOf(document)) ? 'beside' : 'inserted'
    })
  })

  return {
    invalidateUpTo,

    async issue(token: NewToken): Promise<boolean> {
      const document = toLiveDocument(token)
      // Each turn that fails is a turn in which another caller's token was issued.
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const outcome = await inserted(document)
        if (outcome !== 'beside') return outcome === 'inserted'
        await invalidateUpTo(token.userId, token, token.createdAt)
      }
      throw new AccountFlowsError(
        'ERR_STORE_CONTENTION',
        'Too many reset tokens are being issued for one user',
      )
    },
  }
}

/** Of their users, what was asked for no earlier than the earliest of them. */
function notBefore(documents: ResetTokenDocument[]) {
  const earliest = Math.min(...documents.map(({ requested_at }) => requested_at.getTime()))
  const userIds = documents.map(({ user_id }) => user_id)
  return { user_id: { $in: userIds }, requested_at: { $gte: new Date(earliest) } }
}

/** A damaged record without the time is no reason to keep a token alive. */
function invalidation(request: Invalidation) {
  return {
    filter: { user_id: request.userId, live: true as const, $nor: [tokensAfter(request)] },
    update: { $set: { invalidated_at: request.at }, $unset: { live: true as const } },
  }
}
