import type { Filter } from 'mongodb'
import type { Token, VerificationTokenStore } from '../../ports/index.ts'
import { firstReadable, type OpenCollection } from './collection.ts'
import { text, time } from './conditions.ts'
import { type AccountPart, accountPart } from './forget.ts'
import { writtenTogether } from './together.ts'
import { isWholeVerification, type TokenDocument, toTokenDocument } from './token-document.ts'
import { isInTime, mongoTokens, revoked, tokenIndexes } from './tokens.ts'

export function mongoVerificationTokens(
  open: OpenCollection,
): VerificationTokenStore & AccountPart {
  const collectionName = 'email_verification_tokens'
  const collection = open<TokenDocument>(collectionName)

  const inserted = writtenTogether(collection)
  const used = writtenTogether(collection)

  async function expire(which: Filter<TokenDocument>, at: Date) {
    await collection.updateMany(
      { ...which, used_at: { $type: 'null' }, ...isInTime(at) },
      { $set: { expires_at: at } },
    )
  }

  return {
    ...accountPart(collection, tokenIndexes, 'user_id'),
    ...mongoTokens(open, collectionName, isWholeVerification),

    issue: async (token) => inserted({ insertOne: { document: toTokenDocument(token) } }),

    // `purge_at` has an index, and the order of `expires_at` where that is still to come.
    async latestExpiry(at) {
      const latestFirst = collection.find(isInTime(at)).sort({ purge_at: -1 })
      const [latest] = await firstReadable(latestFirst, isUnused)
      return latest?.expires_at
    },

    async revoke(which, at) {
      const upTo = 'userId' in which ? which.upTo : undefined
      const ofJob = upTo && { mail_job_id: text(upTo.mailJobId), attempt: { $lte: upTo.attempt } }
      await expire({ ...revoked(which), ...ofJob }, at)
    },

    use: async (token, at) => used({ updateMany: use(token, at) }),
  }
}

function use({ id, userId, email }: Pick<Token, 'id' | 'userId' | 'email'>, at: Date) {
  const isIt = { $eq: ['$_id', { $literal: text(id) }] }
  return {
    filter: { user_id: text(userId), email: text(email), used_at: { $type: 'null' as const } },
    update: [
      {
        $set: {
          used_at: { $cond: [isIt, time(at), null] },
          expires_at: { $cond: [isIt, '$expires_at', { $min: ['$expires_at', at] }] },
        },
      },
    ],
  }
}

function isUnused(document: TokenDocument): boolean {
  return isWholeVerification(document) && !document.used_at
}
