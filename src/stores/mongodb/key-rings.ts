import type { KeyRings } from '../../ports/index.ts'
import type { OpenCollection } from './collection.ts'
import { isText, text } from './conditions.ts'
import { type NamedIndex, storedPart, type StoredPart } from './indexes.ts'

interface RingDocument {
  _id: string
  key_ids: unknown
  noted_at: Date
}

const HOUR_S = 3_600
const MAX_PROCESSES = 1_000

/** Cleans up; how long a note counts, its reader says. */
const indexes: NamedIndex[] = [
  { name: 'noted_at_ttl', key: { noted_at: 1 }, expireAfterSeconds: HOUR_S },
]

export function mongoKeyRings(open: OpenCollection): KeyRings & StoredPart {
  const collection = open<RingDocument>('key_rings')
  return {
    ...storedPart(collection, indexes),

    async note(processId, keyIds) {
      const its = { _id: text(processId) }
      if (keyIds.length === 0) await collection.deleteOne(its)
      else {
        const update = {
          $set: { key_ids: keyIds.map(text) },
          $currentDate: { noted_at: true },
        } as const
        await collection.updateOne(its, update, { upsert: true })
      }
    },

    async noted(withinMs) {
      const found = await collection
        .find({
          noted_at: { $type: 'date' },
          $expr: { $gt: ['$noted_at', { $subtract: ['$$NOW', withinMs] }] },
        })
        .limit(MAX_PROCESSES)
        .toArray()
      return found.map(({ _id, key_ids }) => ({
        processId: _id,
        keyIds: Array.isArray(key_ids) ? key_ids.filter(isText) : [],
      }))
    },
  }
}
