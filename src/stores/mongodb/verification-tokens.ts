import type { Db, Filter } from 'mongodb'
import type { VerificationTokenStore } from '../../ports/index.ts'
import type { Forgetful } from '../state/forget-account.ts'
import { carriedTypes } from './carried.ts'
import { firstReadable, openCollection } from './collection.ts'
import { forgetDocuments } from './forget.ts'
import { text, time } from './conditions.ts'
import { storedPart, type StoredPart } from './indexes.ts'
import { tokensAfter } from './request-order.ts'
import { together } from './together.ts'
import { mongoTokenHistories } from './token-histories.ts'
import {
  fromDeadDocument,
  fromTokenDocument,
  isInTime,
  isOwned,
  issuedTo,
  revoked,
  type TokenDocument,
  tokenIndexes,
  tokenTypes,
  toTokenDocument,
} from './token-document.ts'
import { type FieldTypes, hasTypes, stringOf } from './values.ts'

interface VerificationTokenDocument extends TokenDocument {
  pending_login_id?: string
}

const optionalTypes: FieldTypes = { ...carriedTypes, pending_login_id: 'string' }

function isUnused(token: VerificationTokenDocument): boolean {
  return hasTypes(token, { ...tokenTypes, used_at: 'null' }, optionalTypes)
}

function isWhole(token: TokenDocument): boolean {
  return hasTypes(token, { ...tokenTypes, used_at: ['date', 'null'] }, optionalTypes)
}

/** `email_verification_tokens` on MongoDB. */
export function mongoVerificationTokens(db: Db): VerificationTokenStore & StoredPart & Forgetful {
  const collection = openCollection<VerificationTokenDocument>(db, 'email_verification_tokens')

  const inserted = together(async (tokens: VerificationTokenDocument[]) => {
    await collection.insertMany(tokens, { ordered: false })
    return tokens
  })

  async function expire(which: Filter<VerificationTokenDocument>, at: Date) {
    await collection.updateMany(
      { ...which, used_at: { $type: 'null' }, ...isInTime(at) },
      { $set: { expires_at: at } },
    )
  }

  return {
    ...storedPart(collection, tokenIndexes),
    forget: (userId) => forgetDocuments(collection, { user_id: text(userId) }),
    ...mongoTokenHistories(db, collection.collectionName, isWhole),

    async issue(token) {
      await inserted({
        ...toTokenDocument(token),
        ...(token.pendingLoginId !== undefined && { pending_login_id: token.pendingLoginId }),
      })
    },

    async findUsable(tokenHash, at) {
      const document = await collection.findOne({ token_hash: text(tokenHash), ...isInTime(at) })
      return document && isUnused(document)
        ? { ...fromTokenDocument(document), pendingLoginId: document.pending_login_id }
        : undefined
    },

    async findDead(tokenHash, at) {
      const document = await collection.findOne({ token_hash: text(tokenHash) })
      if (!document || !isOwned(document)) return undefined
      if (!document.used_at && document.expires_at > time(at)) return undefined
      return {
        ...fromDeadDocument(document),
        pendingLoginId: stringOf(document.pending_login_id),
        reason: document.used_at ? 'used' : 'expired',
      }
    },

    async hasUsable(account, at, ofLogin = false) {
      const tokens = collection.find({
        ...issuedTo(account),
        ...(ofLogin && { pending_login_id: { $exists: true } }),
        ...isInTime(at),
      })
      return (await firstReadable(tokens, isUnused)).length > 0
    },

    // `purge_at` has an index, and the order of `expires_at` where that is still to come.
    async latestExpiry(at) {
      const latestFirst = collection.find(isInTime(at)).sort({ purge_at: -1 })
      const [latest] = await firstReadable(latestFirst, isUnused)
      return latest?.expires_at
    },

    revoke: (which, at) => expire(revoked(which), at),

    revokeOf: (userId, { mailJobId, attempt }, at) =>
      expire(
        { user_id: text(userId), mail_job_id: text(mailJobId), attempt: { $lte: attempt } },
        at,
      ),

    async hasLater(userId, request) {
      const later = { user_id: text(userId), ...tokensAfter(request) }
      return (await collection.findOne(later, { projection: { _id: 1 } })) !== null
    },

    async markUsed({ id, userId, email }, at) {
      const isIt = { $eq: ['$_id', { $literal: text(id) }] }
      await collection.updateMany(
        { user_id: text(userId), email: text(email), used_at: { $type: 'null' } },
        [
          {
            $set: {
              used_at: { $cond: [isIt, time(at), null] },
              expires_at: { $cond: [isIt, '$expires_at', { $min: ['$expires_at', at] }] },
            },
          },
        ],
      )
    },
  }
}
