import type { Db } from 'mongodb'
import { RateLimiterMongo } from 'rate-limiter-flexible'
import type { RateLimits } from '../../ports/index.ts'
import { openCollection } from './collection.ts'
import { isNot, text } from './conditions.ts'
import { isDuplicateKey, serverErrorCode } from './errors.ts'
import { type NamedIndex, storedPart, type StoredPart } from './indexes.ts'
import { COUNT_ONLY, windowsOf } from '../state/rate-limit-windows.ts'

const NAME = 'rate_limits'
const TYPE_MISMATCH = 14

/** No window of ours; `points` may be any number, and `$inc` refuses what is none. */
const isDamaged = {
  $or: [isNot('expire', 'date'), { points: { $not: { $type: 'number' as const } } }],
}

/** The field names are those of rate-limiter-flexible. */
const indexes: NamedIndex[] = [
  { name: 'key_unique', key: { key: 1 }, unique: true },
  { name: 'expire_ttl', key: { expire: 1 }, expireAfterSeconds: 0 },
]

/** `rate_limits` on MongoDB: one command for each hit, and for each look. */
export function mongoRateLimits(db: Db): RateLimits & StoredPart {
  const collection = openCollection(db, NAME)

  // The library would try for ever to replace a record whose window has no end, and no TTL index removes one.
  async function counted(where: { key: string }, update: object, options: object) {
    try {
      return await collection.findOneAndUpdate(where, update, options)
    } catch (error) {
      if (isDuplicateKey(error) || serverErrorCode(error) === TYPE_MISMATCH)
        await collection.deleteOne({ key: text(where.key), ...isDamaged })
      throw error
    }
  }

  const windows = windowsOf(
    new RateLimiterMongo({
      ...COUNT_ONLY,
      storeClient: {
        collection: () => ({
          findOneAndUpdate: counted,
          findOne: (where: { key: string }) => collection.findOne(where),
        }),
      },
      tableName: NAME,
      // It would create them at once, and several processes would at the same time.
      disableIndexesCreation: true,
    }),
  )
  return {
    ...storedPart(collection, indexes),
    hit: (key, windowMs) => windows.hit(text(key), windowMs),
    msToEnd: (key) => windows.msToEnd(text(key)),
  }
}
