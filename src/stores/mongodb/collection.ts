import type { Collection, CollectionOptions, Db, Document } from 'mongodb'

/**
 * What every operation needs, whatever the host chose for its own: reads see every write that was answered before, and
 * values come back as the types that the code expects.
 */
export const operationOptions = {
  writeConcern: { w: 'majority' },
  readConcern: { level: 'local' },
  readPreference: 'primary',
  ignoreUndefined: false,
  raw: false,
  promoteValues: true,
  promoteLongs: true,
  useBigInt64: false,
} satisfies CollectionOptions

export function openCollection<T extends Document>(db: Db, name: string): Collection<T> {
  return db.collection<T>(name, operationOptions)
}
