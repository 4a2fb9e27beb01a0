import { PGlite } from '@electric-sql/pglite'
import { itIsARecordStore } from '../../src/contract/record-store.ts'
import { memoryRecords } from '../../src/stores/memory/records.ts'
import { mongoRecords } from '../../src/stores/mongodb/records.ts'
import { postgresRecords } from '../../src/stores/postgresql/records.ts'
import { describeWithMongo, suiteDatabase } from '../support/mongod.ts'

itIsARecordStore('memoryRecords()', async () => ({
  store: memoryRecords(),
  close: async () => {},
}))

describeWithMongo('On MongoDB', () => {
  const fresh = suiteDatabase()

  itIsARecordStore('mongoRecords()', async () => ({
    store: mongoRecords(fresh.db),
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

  itIsARecordStore('postgresRecords()', async () => ({
    store: postgresRecords(database),
    async close() {
      await database.exec('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    },
  }))
})
