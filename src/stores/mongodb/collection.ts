import type { Collection, CollectionOptions, Db, Document } from 'mongodb'

/**
 * The options of every operation, whatever the host chose for its own. Reads see every write that was answered before. Values
 * come back as the types that the code expects.
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

/** Those records that can be read; the others hide none. */
export async function* readable<T>(
  records: AsyncIterable<T>,
  isReadable: (record: T) => boolean,
): AsyncGenerator<T> {
  for await (const record of records) if (isReadable(record)) yield record
}

/** The first few of them. */
export async function firstReadable<T>(
  records: AsyncIterable<T>,
  isReadable: (record: T) => boolean,
  limit = 1,
): Promise<T[]> {
  const first: T[] = []
  for await (const record of readable(records, isReadable)) {
    first.push(record)
    if (first.length === limit) break
  }
  return first
}

export function openCollection<T extends Document>(db: Db, name: string): Collection<T> {
  return db.collection<T>(name, operationOptions)
}
