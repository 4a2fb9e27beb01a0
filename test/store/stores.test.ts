import { itIsAnAccountFlowsStore } from './contract/index.ts'
import { flowsStore } from '../../src/store/index.ts'
import { memoryStore } from '../../src/store/memory/store.ts'
import { mongoStore } from '../../src/store/mongodb/store.ts'
import { postgresStore } from '../../src/store/postgresql/store.ts'
import { describeWithMongo, suiteDatabase } from '../support/mongod.ts'
import { describeOnPostgresql } from '../support/postgresql.ts'
import { movableClock } from '../support/time.ts'

itIsAnAccountFlowsStore('the store on memoryStore()', async () => ({
  store: flowsStore(memoryStore(movableClock), movableClock),
  close: async () => {},
}))

describeWithMongo('With records', () => {
  const fresh = suiteDatabase()
  itIsAnAccountFlowsStore('the store on mongoStore()', async () => ({
    store: flowsStore(mongoStore(fresh.db), movableClock),
    async close() {
      for (const collection of await fresh.db.collections()) await collection.deleteMany({})
    },
  }))
})

describeOnPostgresql('With records', (database, empty) => {
  itIsAnAccountFlowsStore('the store on postgresStore()', async () => ({
    store: flowsStore(postgresStore(database()), movableClock),
    close: empty,
  }))
})
