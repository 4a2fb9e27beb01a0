import type { Db } from 'mongodb'
import { RateLimiterMongo } from 'rate-limiter-flexible'
import type { RateLimitStore } from '../ports.ts'
import { openCollection } from './mongodb-collection.ts'
import { text } from './mongodb-conditions.ts'
import { createIndexes, type NamedIndex } from './mongodb-indexes.ts'
import { countOf, countingOnly, inWindow } from './rate-limits.ts'

const indexes: NamedIndex[] = [
  { name: 'key_unique', key: { key: 1 }, unique: true },
  { name: 'expire_ttl', key: { expire: 1 }, expireAfterSeconds: 0 },
]

/** `rate_limits` on MongoDB (D21). */
export function mongoRateLimits(db: Db): RateLimitStore & { start(): Promise<void> } {
  const collection = openCollection(db, 'rate_limits')
  const limiter = new RateLimiterMongo({
    ...countingOnly,
    storeClient: { collection: () => collection },
    tableName: collection.collectionName,
    // It would create them whenever it likes, and over another connection.
    disableIndexesCreation: true,
  })
  return {
    start: () => createIndexes(collection, indexes),

    count: async (key, windowMs) =>
      countOf(await limiter.penalty(text(key), 1, { attrs: {}, ...inWindow(windowMs) })),
  }
}
