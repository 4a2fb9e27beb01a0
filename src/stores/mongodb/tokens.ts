import type { Revoked, TokenStore } from '../../ports/index.ts'
import { firstReadable, type OpenCollection } from './collection.ts'
import { atMost, text, time } from './conditions.ts'
import { type NamedIndex, purgeIndex } from './indexes.ts'
import { foundTogether } from './together.ts'
import { type AnyTokenDocument, fromTokenDocument } from './token-document.ts'

export const tokenIndexes: NamedIndex[] = [
  { name: 'newest_of_user', key: { user_id: 1, created_at: 1 } },
  { name: 'token_hash_unique', key: { token_hash: 1 }, unique: true },
  purgeIndex,
]

/** How tokens of either kind are found on MongoDB; a record that is not whole is as if it were not there. */
export function mongoTokens(
  open: OpenCollection,
  name: string,
  isWhole: (document: AnyTokenDocument) => boolean,
): TokenStore {
  const collection = open<AnyTokenDocument>(name)

  const found = foundTogether<AnyTokenDocument>(collection, 'token_hash')

  return {
    async find(tokenHash) {
      const document = await found(text(tokenHash))
      return document && isWhole(document) ? fromTokenDocument(document) : undefined
    },

    async ofUser(userId, limit) {
      const newestFirst = collection.find({ user_id: text(userId) }).sort({ created_at: -1 })
      return (await firstReadable(newestFirst, isWhole, atMost(limit))).map(fromTokenDocument)
    },
  }
}

/** Of tokens that did not expire: at exactly `expires_at` they have. */
export const isInTime = (at: Date) => ({ expires_at: { $gt: time(at) } })

export function revoked(which: Revoked) {
  return 'id' in which ? { _id: text(which.id) } : { user_id: text(which.userId) }
}
