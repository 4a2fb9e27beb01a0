import type { Collection, Document, Filter } from 'mongodb'
import type { Forgotten } from '../state/forget-account.ts'

/** Removes what is of one account, but what is under way. */
export async function forgetDocuments<T extends Document>(
  collection: Collection<T>,
  ofAccount: Filter<T>,
  underWay?: Filter<T>,
): Promise<Forgotten> {
  if (!underWay) return { erased: (await collection.deleteMany(ofAccount)).deletedCount, left: 0 }
  const over = { $and: [ofAccount, { $nor: [underWay] }] }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- of two filters of the same collection
  const { deletedCount } = await collection.deleteMany(over as Filter<T>)
  return { erased: deletedCount, left: await collection.countDocuments(ofAccount) }
}
