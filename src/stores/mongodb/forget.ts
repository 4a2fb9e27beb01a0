import type { Collection, Document, Filter } from 'mongodb'
import type { Forgetful } from '../state/forget-account.ts'
import { text } from './conditions.ts'
import { type NamedIndex, storedPart, type StoredPart } from './indexes.ts'

/** A collection of which each record is of one account. */
export interface AccountPart extends StoredPart, Forgetful {}

/**
 * @param owner - the field with the id of the account.
 * @param underWay - which records stay.
 */
export function accountPart<T extends Document>(
  collection: Collection<T>,
  indexes: NamedIndex[],
  owner: 'account_id' | 'user_id',
  underWay?: (at: Date) => object,
): AccountPart {
  return {
    ...storedPart(collection, indexes),

    async forget(accountId, at) {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the field is one of the collection
      const its = { [owner]: text(accountId) } as Filter<T>
      const left = underWay ? { $nor: [underWay(at)] } : {}
      const { deletedCount: erased } = await collection.deleteMany({ ...its, ...left })
      return { erased, left: underWay ? await collection.countDocuments(its) : 0 }
    },
  }
}
