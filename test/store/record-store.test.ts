import { itIsARecordStore } from '../../src/contract/suites/record-store.ts'
import { memoryStore } from '../../src/store/memory/store.ts'
import { mongoStore } from '../../src/store/mongodb/store.ts'
import { postgresStore } from '../../src/store/postgresql/store.ts'
import { describeWithMongo, suiteDatabase } from '../support/mongod.ts'
import { describeOnPostgresql } from '../support/postgresql.ts'

itIsARecordStore('memoryStore()', async () => ({
  store: memoryStore(),
  close: async () => {},
}))

describeWithMongo('On MongoDB', () => {
  const fresh = suiteDatabase()

  itIsARecordStore(
    'mongoStore()',
    async () => ({
      store: mongoStore(fresh.db),
      async close() {
        for (const collection of await fresh.db.collections()) await collection.deleteMany({})
      },
    }),
    ({ name }, id) =>
      fresh.db.collection(name).updateOne({ owner: 'ann', count: 1 }, { $set: { count: id } }),
  )
})

describeOnPostgresql('On PostgreSQL', (database, empty) => {
  itIsARecordStore(
    'postgresStore()',
    async () => ({ store: postgresStore(database()), close: empty }),
    ({ name }, id) => database().query(`UPDATE ${name} SET parameters = '{' WHERE id = $1`, [id]),
  )
})
