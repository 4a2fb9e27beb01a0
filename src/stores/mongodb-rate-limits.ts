import type { Db } from 'mongodb'
import { RateLimiterMongo } from 'rate-limiter-flexible'
import type { RateLimits } from '../ports.ts'
import { openCollection } from './mongodb-collection.ts'
import { text } from './mongodb-conditions.ts'
import { createIndexes, type NamedIndex } from './mongodb-indexes.ts'
import { COUNT_ONLY, windowsOf } from './rate-limit-windows.ts'

const NAME = 'rate_limits'

/** The field names are those of rate-limiter-flexible. */
const indexes: NamedIndex[] = [
  { name: 'key_unique', key: { key: 1 }, unique: true },
  { name: 'expire_ttl', key: { expire: 1 }, expireAfterSeconds: 0 },
]

/** `rate_limits` on MongoDB: one command for each hit. */
export function mongoRateLimits(db: Db): RateLimits & { start(): Promise<void> } {
  const collection = openCollection(db, NAME)
  const windows = windowsOf(
    new RateLimiterMongo({
      ...COUNT_ONLY,
      storeClient: { collection: () => collection },
      tableName: NAME,
      // It would create them at once, and several processes would at the same time.
      disableIndexesCreation: true,
    }),
  )
  return {
    start: () => createIndexes(collection, indexes),
    hit: (key, windowMs) => windows.hit(text(key), windowMs),
  }
}
