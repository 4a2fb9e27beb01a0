import type { Db, Filter } from 'mongodb'
import type { TokenHistories, TokenHistory } from '../../ports/index.ts'
import { fromCarriedFields } from './carried.ts'
import { openCollection } from './collection.ts'
import { atMost, hasOnlyDates, type hasTypes, text } from './conditions.ts'
import type { TokenDocument } from './token-document.ts'

/** A token of either kind. */
interface AnyTokenDocument extends TokenDocument {
  claimed_at?: Date | null
  invalidated_at?: Date | null
  completed_at?: Date | null
}

const hasReadableTimes = hasOnlyDates(
  'created_at',
  'expires_at',
  'used_at',
  'claimed_at',
  'invalidated_at',
  'completed_at',
)

const withoutSecrets = { token_hash: 0, new_hash: 0 }

/** What became of the tokens of one kind; a record that is not `whole` is as if it were not there. */
export function mongoTokenHistories(
  db: Db,
  name: string,
  whole: ReturnType<typeof hasTypes>,
): TokenHistories {
  const collection = openCollection<AnyTokenDocument>(db, name)

  function tokens(which: Filter<AnyTokenDocument>) {
    const filter = { ...which, ...whole, ...hasReadableTimes }
    return collection.find(filter, { projection: withoutSecrets })
  }

  return {
    async findHistory(tokenHash) {
      const [document] = await tokens({ token_hash: text(tokenHash) })
        .limit(1)
        .toArray()
      return document && toHistory(document)
    },

    async historiesOf(userId, limit) {
      const documents = await tokens({ user_id: text(userId) })
        .sort({ created_at: -1 })
        .limit(atMost(limit))
        .toArray()
      return documents.map(toHistory)
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
