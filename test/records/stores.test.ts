import { PGlite } from '@electric-sql/pglite'
import { itIsAnAccountFlowsStore } from '../../src/contract/index.ts'
import { flowsStore } from '../../src/records/store.ts'
import { memoryRecords } from '../../src/stores/memory/records.ts'
import { mongoRecords } from '../../src/stores/mongodb/records.ts'
import { postgresRecords } from '../../src/stores/postgresql/records.ts'
import { describeWithMongo, suiteDatabase } from '../support/mongod.ts'
import { movableClock } from '../support/time.ts'

itIsAnAccountFlowsStore('the store on memoryRecords()', async () => ({
  store: flowsStore(memoryRecords(movableClock), movableClock),
  close: async () => {},
}))

describeWithMongo('With records', () => {
  const fresh = suiteDatabase()
  itIsAnAccountFlowsStore('the store on mongoRecords()', async () => ({
    store: flowsStore(mongoRecords(fresh.db), movableClock),
    async close() {
      for (const collection of await fresh.db.collections()) await collection.deleteMany({})
    },
  }))
})

describe('With records', () => {
  let database: PGlite
  before(async () => {
    database = await PGlite.create()
  })
  after(() => database.close())
  itIsAnAccountFlowsStore('the store on postgresRecords()', async () => ({
    store: flowsStore(postgresRecords(database), movableClock),
    async close() {
      await database.exec('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    },
  }))
})
