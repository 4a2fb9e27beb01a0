import type { CollectionOptions, Db, Document } from 'mongodb'
import type { Kind } from '../record-store.ts'

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

/** No dollar, no NUL, and room for the longest name in the 235 bytes of a sharded namespace. */
const PREFIX = /^(?!system\.)[A-Za-z_][\w.-]{0,63}$/

/**
 * The collection of each kind, under a name that every host has the same.
 *
 * @throws TypeError where names with that prefix would be none of MongoDB's, or reserved.
 */
export function collectionsOf<T extends Document>(db: Db, prefix: string | undefined) {
  if (prefix !== undefined && !(typeof prefix === 'string' && PREFIX.test(prefix)))
    throw new TypeError(
      'prefix must be 1 to 64 letters, digits, "_", "-" and ".", begin with a letter or "_", and not with "system."; leave it out for none',
    )
  return ({ name }: Kind) => db.collection<T>(`${prefix ?? ''}${name}`, operationOptions)
}
