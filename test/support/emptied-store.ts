import { mongoStore } from '../../src/stores/mongodb-store.ts'
import { freshDatabase, type FreshDatabase } from './mongod.ts'

export interface AnyDocument {
  _id: string
  [field: string]: unknown
}

/** One database for a suite, emptied for each test, and its documents as they are stored. */
export function emptiedStore() {
  let fresh: FreshDatabase

  before(async () => {
    fresh = await freshDatabase()
  })
  after(() => fresh.drop())

  return {
    database: () => fresh,
    stored: (name: string) => fresh.db.collection<AnyDocument>(name),

    /** Emptied, not dropped: MongoDB under Wine takes its time over new collections. */
    async emptyStore() {
      for (const collection of await fresh.db.collections()) await collection.deleteMany({})
      return mongoStore(fresh.db)
    },
  }
}
