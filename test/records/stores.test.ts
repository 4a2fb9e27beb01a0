import { PGlite } from '@electric-sql/pglite'
import { itKeepsClientLogouts } from '../../src/contract/client-logouts.ts'
import { itKeepsCutoffs, itKeepsPendingLogins } from '../../src/contract/logins.ts'
import { itKeepsNotMeTokens } from '../../src/contract/not-me-tokens.ts'
import { itKeepsKeyRings } from '../../src/contract/records.ts'
import { itKeepsResetTokens } from '../../src/contract/reset-tokens.ts'
import { itKeepsVerificationTokens } from '../../src/contract/verification-tokens.ts'
import type { RecordStore } from '../../src/ports/record-store.ts'
import { CLIENT_LOGOUTS, clientLogouts } from '../../src/records/client-logouts.ts'
import { CUTOFFS, cutoffStore } from '../../src/records/cutoffs.ts'
import { KEY_RINGS, keyRings } from '../../src/records/key-rings.ts'
import { NOT_ME_TOKENS, notMeTokens } from '../../src/records/not-me-tokens.ts'
import { PENDING_LOGINS, pendingLogins } from '../../src/records/pending-logins.ts'
import { createRecords, type Records } from '../../src/records/records.ts'
import { KINDS, resetTokens, verificationTokens } from '../../src/records/token-stores.ts'
import { memoryRecords } from '../../src/stores/memory/records.ts'
import { mongoRecords } from '../../src/stores/mongodb/records.ts'
import { postgresRecords } from '../../src/stores/postgresql/records.ts'
import { describeWithMongo, suiteDatabase } from '../support/mongod.ts'
import { movableClock } from '../support/time.ts'

const ALL = [
  ...Object.values(KINDS),
  NOT_ME_TOKENS,
  PENDING_LOGINS,
  CUTOFFS,
  CLIENT_LOGOUTS,
  KEY_RINGS,
]

function itKeepsEverything(create: () => RecordStore, clear: () => Promise<void>) {
  let store: RecordStore
  let records: Records

  beforeEach(async () => {
    await clear()
    store = create()
    await store.start(ALL)
    records = createRecords(store, movableClock)
  })

  for (const part of ['resetTokens', 'invitationTokens'] as const)
    describe(part, () => itKeepsResetTokens(() => resetTokens(records, KINDS[part])))
  describe('verificationTokens', () => itKeepsVerificationTokens(() => verificationTokens(records)))
  describe('notMeTokens', () => itKeepsNotMeTokens(() => notMeTokens(records)))
  describe('pendingLogins', () => itKeepsPendingLogins(() => pendingLogins(records)))
  describe('cutoffs', () => itKeepsCutoffs(() => cutoffStore(records)))
  describe('clientLogouts', () => itKeepsClientLogouts(() => clientLogouts(records)))
  describe('keyRings', () => itKeepsKeyRings(() => keyRings(records, store.now)))
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
