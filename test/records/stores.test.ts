import { PGlite } from '@electric-sql/pglite'
import { itKeepsResetTokens } from '../../src/contract/reset-tokens.ts'
import { itKeepsVerificationTokens } from '../../src/contract/verification-tokens.ts'
import type { RecordStore } from '../../src/ports/record-store.ts'
import { createRecords, type Records } from '../../src/records/records.ts'
import { KINDS, resetTokens, verificationTokens } from '../../src/records/token-stores.ts'
import { memoryRecords } from '../../src/stores/memory/records.ts'
import { mongoRecords } from '../../src/stores/mongodb/records.ts'
import { postgresRecords } from '../../src/stores/postgresql/records.ts'
import { describeWithMongo, suiteDatabase } from '../support/mongod.ts'
import { movableClock } from '../support/time.ts'

function itKeepsEverything(create: () => RecordStore, clear: () => Promise<void>) {
  let records: Records

  beforeEach(async () => {
    await clear()
    const store = create()
    await store.start(Object.values(KINDS))
    records = createRecords(store, movableClock)
  })

  for (const part of ['resetTokens', 'invitationTokens'] as const)
    describe(part, () => itKeepsResetTokens(() => resetTokens(records, KINDS[part])))
  describe('verificationTokens', () => itKeepsVerificationTokens(() => verificationTokens(records)))
}

describe('All kinds of records, in memory', () =>
  itKeepsEverything(
    () => memoryRecords({ now: () => new Date(0) }),
    async () => {},
  ))

describeWithMongo('All kinds of records, on MongoDB', () => {
  const fresh = suiteDatabase()
  itKeepsEverything(
    () => mongoRecords(fresh.db),
    async () => {
      for (const collection of await fresh.db.collections()) await collection.deleteMany({})
    },
  )
})

describe('All kinds of records, on PostgreSQL', () => {
  let database: PGlite
  before(async () => {
    database = await PGlite.create()
  })
  after(() => database.close())
  itKeepsEverything(
    () => postgresRecords(database),
    async () => {
      await database.exec('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    },
  )
})
