import { PGlite } from '@electric-sql/pglite'
import { itIsARecordStore } from '../../src/contract/record-store.ts'
import { memoryStore } from '../../src/stores/memory/store.ts'
import { mongoStore } from '../../src/stores/mongodb/store.ts'
import { postgresStore } from '../../src/stores/postgresql/store.ts'
import { describeWithMongo, suiteDatabase } from '../support/mongod.ts'

itIsARecordStore('memoryStore()', async () => ({
  store: memoryStore(),
  close: async () => {},
}))

describeWithMongo('On MongoDB', () => {
  const fresh = suiteDatabase()

  itIsARecordStore('mongoStore()', async () => ({
    store: mongoStore(fresh.db),
    async close() {
      for (const collection of await fresh.db.collections()) await collection.deleteMany({})
    },
  }))
})

describe('On PostgreSQL', () => {
  let database: PGlite
  before(async () => {
    database = await PGlite.create()
  })
  after(() => database.close())

  itIsARecordStore('postgresStore()', async () => ({
    store: postgresStore(database),
    async close() {
      await database.exec('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    },
  }))
})
