import { mustExist } from '../../src/contract/samples.ts'
import { mongoStore } from '../../src/stores/mongodb/store.ts'
import { suiteDatabase } from './suite-database.ts'

export interface AnyDocument {
  _id: string
  [field: string]: unknown
}

/** One database for a suite, emptied for each test, and its documents as they are stored. */
export function emptiedStore() {
  const fresh = suiteDatabase()
  const stored = (name: string) => fresh.db.collection<AnyDocument>(name)

  return {
    fresh,
    stored,

    /** The one document there. */
    async storedOne(name: string): Promise<AnyDocument> {
      return mustExist((await stored(name).findOne()) ?? undefined)
    },

    /** Emptied, not dropped: MongoDB under Wine takes its time over new collections. */
    async emptyStore() {
      for (const collection of await fresh.db.collections()) await collection.deleteMany({})
      return mongoStore(fresh.db)
    },
  }
}
