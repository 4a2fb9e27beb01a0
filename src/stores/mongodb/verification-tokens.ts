import type { Db, Filter } from 'mongodb'
import type { VerificationTokenStore } from '../../ports/index.ts'
import type { Forgetful } from '../state/forget-account.ts'
import { openCollection } from './collection.ts'
import { forgetDocuments } from './forget.ts'
import { hasTypes, text, time } from './conditions.ts'
import { storedPart, type StoredPart } from './indexes.ts'
import { tokensAfter } from './request-order.ts'
import { mongoTokenHistories } from './token-histories.ts'
import {
  fromDeadDocument,
  fromTokenDocument,
  isOwned,
  issuedTo,
  optionalTokenTypes,
  revoked,
  type TokenDocument,
  tokenIndexes,
  tokenTypes,
  toTokenDocument,
} from './token-document.ts'
import { stringOf } from './values.ts'

interface VerificationTokenDocument extends TokenDocument {
  pending_login_id?: string
}

const optionalTypes = { ...optionalTokenTypes, pending_login_id: 'string' } as const
const isUnused = hasTypes({ ...tokenTypes, used_at: 'null' }, optionalTypes)
const isWhole = hasTypes({ ...tokenTypes, used_at: ['date', 'null'] }, optionalTypes)

/** `email_verification_tokens` on MongoDB. */
export function mongoVerificationTokens(db: Db): VerificationTokenStore & StoredPart & Forgetful {
  const collection = openCollection<VerificationTokenDocument>(db, 'email_verification_tokens')

  async function expire(which: Filter<VerificationTokenDocument>, at: Date) {
    await collection.updateMany(
      { ...which, used_at: { $type: 'null' }, expires_at: { $gt: time(at) } },
      { $set: { expires_at: at } },
    )
  }

  return {
    ...storedPart(collection, tokenIndexes),
    forget: (userId) => forgetDocuments(collection, { user_id: text(userId) }),
    ...mongoTokenHistories(db, collection.collectionName, isWhole),

    async issue(token) {
      await collection.insertOne({
        ...toTokenDocument(token),
        ...(token.pendingLoginId !== undefined && { pending_login_id: token.pendingLoginId }),
      })
    },

    async findUsable(tokenHash, at) {
      const document = await collection.findOne({
        token_hash: text(tokenHash),
        expires_at: { $gt: time(at) },
        ...isUnused,
      })
      return document
        ? { ...fromTokenDocument(document), pendingLoginId: document.pending_login_id }
        : undefined
    },

    async findDead(tokenHash, at) {
      const document = await collection.findOne({ token_hash: text(tokenHash), ...isOwned })
      if (!document || (!document.used_at && document.expires_at > time(at))) return undefined
      return {
        ...fromDeadDocument(document),
        pendingLoginId: stringOf(document.pending_login_id),
        reason: document.used_at ? 'used' : 'expired',
      }
    },

    async hasUsable(account, at, ofLogin = false) {
      const usable = {
        ...issuedTo(account),
        ...(ofLogin && { pending_login_id: { $exists: true } }),
        expires_at: { $gt: time(at) },
        ...isUnused,
      }
      return (await collection.findOne(usable, { projection: { _id: 1 } })) !== null
    },

    // `purge_at` has an index, and the order of `expires_at` where that is still to come.
    async latestExpiry(at) {
      const latest = await collection.findOne(
        { expires_at: { $gt: time(at) }, ...isUnused },
        { sort: { purge_at: -1 }, projection: { expires_at: 1 } },
      )
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
