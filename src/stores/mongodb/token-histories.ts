import type { Db } from 'mongodb'
import type { TokenHistories, TokenHistory } from '../../ports/index.ts'
import { fromCarriedFields } from './carried.ts'
import { firstReadable, openCollection } from './collection.ts'
import { atMost, text } from './conditions.ts'
import type { AnyTokenDocument } from './token-document.ts'

/** What became of the tokens of one kind; a record that is not whole is as if it were not there. */
export function mongoTokenHistories(
  db: Db,
  name: string,
  isWhole: (token: AnyTokenDocument) => boolean,
): TokenHistories {
  const collection = openCollection<AnyTokenDocument>(db, name)

  return {
    async findHistory(tokenHash) {
      const token = await collection.findOne({ token_hash: text(tokenHash) })
      return token && isWhole(token) ? toHistory(token) : undefined
    },

    async historiesOf(userId, limit) {
      const newestFirst = collection.find({ user_id: text(userId) }).sort({ created_at: -1 })
      const tokens = await firstReadable(newestFirst, isWhole, atMost(limit))
      return tokens.map(toHistory)
    },
  }
}

function toHistory(document: AnyTokenDocument): TokenHistory {
  return {
    id: document._id,
    userId: document.user_id,
    email: document.email,
    passwordDigest: document.password_digest,
    carried: fromCarriedFields(document),
    mailJobId: document.mail_job_id,
    createdAt: document.created_at,
    expiresAt: document.expires_at,
    usedAt: document.used_at ?? undefined,
    claimedAt: document.claimed_at ?? undefined,
    invalidatedAt: document.invalidated_at ?? undefined,
    completedAt: document.completed_at ?? undefined,
  }
}
