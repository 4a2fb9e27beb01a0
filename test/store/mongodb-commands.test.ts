import { expect } from 'chai'
import { MongoClient, type CreateIndexesOptions, type Db, type IndexSpecification } from 'mongodb'
import { hour, minute, sampleResetToken } from './contract/samples.ts'
import { systemClock } from '../../src/clock.ts'
import { mongoStore, mongoUsers } from '../../src/index.ts'
import { duplicatesIn } from '../../src/store/mongodb/driver.ts'
import { together } from '../../src/store/batches.ts'
import { eventually } from '../support/eventually.ts'
import { SHORT_WAITS, startMongoProxy, type MongoProxy } from '../support/mongo-proxy.ts'
import {
  describeWithMongo,
  describeWithReplicaSet,
  freshDatabase,
  type FreshDatabase,
  suiteDatabase,
} from '../support/mongod.ts'
import { moveTime } from '../support/time.ts'
import { keptOn } from '../support/kept.ts'
import { storeCalls } from './store-calls.ts'

/** Every method of every port. */
const callsOf = (db: Db) => storeCalls(mongoStore(db), mongoUsers(db.collection('users')))

const refusalOf = (work: Promise<unknown> | undefined): Promise<unknown> =>
  Promise.resolve(work).catch((error: unknown) => error)

const TTL_LIMIT = process.env['MONGODB_URI'] ? 90_000 : 15_000

describeWithMongo('mongoStore().start() [full]', function () {
  let fresh: FreshDatabase

  beforeEach(async () => {
    fresh = await freshDatabase()
  })

  afterEach(() => fresh.drop())

  it('creates one set of indexes, when five processes start at once (FLT-13)', async function () {
    this.timeout(60_000)
    const { uri } = fresh
    const clients = await Promise.all([1, 2, 3, 4, 5].map(() => MongoClient.connect(uri)))
    const databases = await Promise.all(clients.map((client) => createdInTurn(client.db())))
    await Promise.all(databases.map((db) => keptOn(db).start()))
    for (const client of clients) await client.close()

    const found: Record<string, string[]> = {}
    for (const collection of await fresh.db.collections())
      found[collection.collectionName] = (await collection.indexes()).map(({ name }) => `${name}`)
    const ofTokens = ['_id_', 'token_hash_unique', 'user_id_created_at', 'purge_at_ttl']
    const ofResets = [...ofTokens, 'live_of_unique', 'user_id_requested_at', 'lease_until']
    const byState = ['state_available_at', 'state_expires_at', 'state_requested_at']
    const byTime = ['recorded_at', 'type_recorded_at', 'account_id_recorded_at']
    const expected = {
      password_reset_tokens: ofResets,
      invitation_tokens: ofResets,
      email_verification_tokens: [...ofTokens, 'expires_at'],
      pending_logins: ['_id_', 'account_id_created_at', 'purge_at_ttl'],
      session_cutoffs: ['_id_'],
      not_me_tokens: ['_id_', 'user_id', 'purge_at_ttl'],
      client_logouts: ['_id_', 'state_available_at', 'account_id_requested_at', 'purge_at_ttl'],
      mail_outbox: ['_id_', ...byState, 'account_id_requested_at', 'requested_at', 'purge_at_ttl'],
      audit_events: ['_id_', ...byTime, 'identifier_hash_recorded_at', 'purge_at_ttl'],
      settings: ['_id_'],
      rate_limits: ['_id_', 'ends_at_ttl'],
      key_rings: ['_id_', 'noted_at', 'purge_at_ttl'],
      oidc_records: ['_id_', 'account_id', 'grant_id', 'uid', 'user_code', 'expires_at_ttl'],
    }
    expect(found).to.have.all.keys(expected)
    for (const [name, indexes] of Object.entries(expected))
      expect(found[name], name).to.have.members(indexes)
  })

  it('says which index of which collection is in the way (FLT-20)', async () => {
    const tokens = fresh.db.collection('password_reset_tokens')
    await tokens.createIndex({ purge_at: 1 }, { name: 'purge_at_ttl', expireAfterSeconds: 60 })
    const refusal = await refusalOf(keptOn(fresh.db).start())
    expect(refusal).to.include({ code: 'ERR_STORE_INDEX' })
    expect(String(refusal)).to.match(/"purge_at_ttl" of the collection "password_reset_tokens"/)
    expect(String(refusal)).to.match(/Drop it/)
    await tokens.dropIndex('purge_at_ttl')
    await keptOn(fresh.db).start()
  })

  it('creates what nobody needs to look through a whole collection for', async () => {
    await fresh.db.setProfilingLevel('all')
    for (const [name, call] of callsOf(fresh.db)) if (!name.startsWith('adapter')) await call()
    await fresh.db.setProfilingLevel('off')
    const profile = fresh.db.collection('system.profile')
    const plans = await profile
      .find({ planSummary: { $exists: true } })
      .map(({ ns, planSummary }) => `${ns} ${planSummary}`)
      .toArray()
    expect(plans.filter((plan) => plan.includes('COLLSCAN'))).to.deep.equal([])
    for (const plan of [
      'mail_outbox IXSCAN { state: 1, available_at: 1',
      'mail_outbox IXSCAN { requested_at: 1',
      'password_reset_tokens IXSCAN { lease_until: 1',
      'email_verification_tokens IXSCAN { user_id: 1, created_at: 1',
      'audit_events IXSCAN { account_id: 1, recorded_at: 1',
      'audit_events IXSCAN { identifier_hash: 1, recorded_at: 1',
      'client_logouts IXSCAN { state: 1, available_at: 1',
      'users IXSCAN { username: 1',
      'users IXSCAN { email: 1',
    ])
      expect(plans.join()).to.include(plan)
    const sorted = { hasSortStage: true, ns: /audit_events|client_logouts/ }
    expect(await profile.countDocuments(sorted)).to.equal(0)
  })

  it('has MongoDB remove links eight days after they expired, and events when they say so (LOG-11)', async function () {
    this.timeout(TTL_LIMIT + 10_000)
    const tokens = fresh.db.collection('password_reset_tokens')
    const events = fresh.db.collection<{ _id: string }>('audit_events')
    const daysAgo = (days: number) => new Date(Date.now() - days * 24 * hour)
    const type = 'email_login_blocked'
    const { start, audit, resetTokens } = keptOn(fresh.db)
    await start()
    await audit.record({ id: 'short', type, at: daysAgo(0) }, 0)
    await audit.record({ id: 'long', type, at: daysAgo(500) }, hour)
    const almost = new Date(daysAgo(8).getTime() + 10 * minute)
    for (const [id, expiresAt] of Object.entries({ expired: daysAgo(8), almost }))
      await resetTokens.issue(sampleResetToken({ id, userId: id, expiresAt }))
    const left = async () => [await tokens.countDocuments(), await events.countDocuments()]
    await eventually('two are removed', async () => (await left()).join() === '1,1', TTL_LIMIT)
    expect(await tokens.distinct('_id')).to.deep.equal(['almost'])
    expect(await events.distinct('_id')).to.deep.equal(['long'])
  })
})

let lastCreated: Promise<unknown> = Promise.resolve()

/**
 * The MongoDB for Windows that Wine runs hangs for ever where two create the same collection at the same moment: there
 * the processes of a test take turns. Every other MongoDB gets all at once.
 */
async function createdInTurn(db: Db): Promise<Db> {
  const { buildEnvironment } = await db.command({ buildInfo: 1 })
  if (buildEnvironment?.target_os !== 'windows') return db
  const create = db.createCollection.bind(db)
  db.createCollection = ((...args: Parameters<Db['createCollection']>) => {
    const created = lastCreated.then(() => create(...args))
    lastCreated = created.catch(() => {})
    return created
  }) as Db['createCollection']
  return db
}

describeWithMongo('mongoStore().inspect() [full]', () => {
  const fresh = suiteDatabase()
  before(() => keptOn(fresh.db).start())

  async function expectFound(wrongIndexes: string[], db = fresh.db) {
    const found = await keptOn(db).inspect()
    expect(found).to.deep.equal({ wrongIndexes, isVolatile: false, isDurable: true })
  }

  /** That this and nothing else is wrong, and nothing any more after a start. */
  async function expectFoundUntilStarted(...wrongIndexes: string[]) {
    await expectFound(wrongIndexes)
    await expectFound(wrongIndexes)
    await keptOn(fresh.db).start()
    await expectFound([])
  }

  it('finds nothing wrong after a start, nor with indexes and collections of others, whatever the host chose for its Db', async () => {
    await expectFound([])
    await fresh.db.collection('mail_outbox').createIndex({ kind: 1 }, { name: 'of_the_host' })
    await fresh.db.createCollection('oidc_session')
    await expectFound([])
    const chosen = {
      promoteValues: false,
      raw: true,
      readPreference: 'secondaryPreferred',
    } as const
    await expectFound([], fresh.client.db(fresh.db.databaseName, chosen))
  })

  it('finds every index and every collection missing before the first start, and creates nothing', async () => {
    const { db, drop } = await freshDatabase()
    const all: string[] = []
    const ofOthers = new Set(['mail_outbox.of_the_host', 'oidc_session._id_'])
    for (const collection of await fresh.db.collections())
      for (const { name } of await collection.indexes())
        all.push(`${collection.collectionName}.${name}`)
    const inspection = await keptOn(db).inspect()
    const ours = all.filter((name) => !ofOthers.has(name))
    expect(inspection.wrongIndexes).to.have.members(ours).and.include('session_cutoffs._id_')
    expect(await db.collections()).to.deep.equal([])
    await drop()
  })

  it('finds an index that was dropped, and those of a collection that was', async () => {
    const dropped = ['password_reset_tokens.live_of_unique', 'mail_outbox.purge_at_ttl']
    for (const [collection = '', name = ''] of dropped.map((each) => each.split('.')))
      await fresh.db.collection(collection).dropIndex(name)
    await expectFoundUntilStarted(...dropped)
    await fresh.db.collection('rate_limits').drop()
    const ofLimits = ['_id_', 'ends_at_ttl'].map((name) => `rate_limits.${name}`)
    await expectFoundUntilStarted(...ofLimits)
  })

  const unique = { unique: true, partialFilterExpression: { live_of: { $type: 'date' } } }
  const inAnyCase = { collation: { locale: 'en', strength: 2 } }
  const [limits, logins, resets] = ['rate_limits', 'pending_logins', 'password_reset_tokens']
  const newest = { account_id: 1, created_at: 1, _id: 1 } as const
  const otherOrder = { created_at: 1, account_id: 1, _id: 1 } as const
  const others: [string, string, IndexSpecification, CreateIndexesOptions][] = [
    ['email_verification_tokens', 'token_hash_unique', { token_hash: 1 }, {}],
    [limits, 'ends_at_ttl', { ends_at: 1 }, { expireAfterSeconds: 60 }],
    [limits, 'ends_at_ttl', { ends_at: 1 }, {}],
    [resets, 'live_of_unique', { live_of: 1 }, unique],
    [logins, 'account_id_created_at', otherOrder, {}],
    [logins, 'account_id_created_at', newest, { sparse: true }],
    [logins, 'account_id_created_at', newest, inAnyCase],
    [logins, 'account_id_created_at', newest, { hidden: true }],
  ]
  for (const [collection, name, key, options] of others) {
    const what = JSON.stringify({ key, ...options })
    it(`finds that ${collection}.${name} is another one: ${what}`, async () => {
      const indexed = fresh.db.collection(collection)
      await indexed.dropIndex(name)
      await indexed.createIndex(key, { name, ...options })
      await expectFound([`${collection}.${name}`])
      await indexed.dropIndex(name)
      await expectFoundUntilStarted(`${collection}.${name}`)
    })
  }
})

describeWithReplicaSet('The commands of the MongoDB stores [full]', () => {
  it('write to the majority and read from the primary, whatever the host chose for its Db', async () => {
    const writes = new Set<unknown>()
    const reads = new Set<unknown>()
    const fresh = await freshDatabase('replica set', ({ commandName, command }) => {
      if (/^(insert|update|delete|findAndModify)$/.test(commandName))
        writes.add(command['writeConcern']?.w)
      if (/^(find|aggregate)$/.test(commandName))
        reads.add(command['$readPreference']?.mode ?? 'primary')
    })
    const chosen = { writeConcern: { w: 1 }, readPreference: 'secondaryPreferred' } as const
    try {
      const db = fresh.client.db(fresh.db.databaseName, chosen)
      for (const [, call] of callsOf(db)) await call()
    } finally {
      await fresh.drop()
    }
    expect([...writes, ...reads]).to.deep.equal(['majority', 'primary'])
  })
})

describeWithReplicaSet(
  'A command with many inserts of which some find their key taken [full]',
  () => {
    const fresh = suiteDatabase('replica set')
    before(() => things().createIndex({ name: 1 }, { name: 'name_unique', unique: true }))
    beforeEach(async () => {
      await things().deleteMany()
      await things().insertOne({ _id: 'a', name: 'apple' })
    })

    const things = () => fresh.db.collection<{ _id: string; name: string }>('things')
    const insert = (w: number, ...ids: [_id: string, name: string][]) =>
      things().insertMany(
        ids.map(([_id, name]) => ({ _id, name })),
        { ordered: false, writeConcern: { w } },
      )

    it('tells which they are, and has done the others; none where all are done', async () => {
      const places = await duplicatesIn(insert(1, ['b', 'berry'], ['a', 'again'], ['c', 'cherry']))
      expect([...places]).to.deep.equal([1])
      expect(await things().countDocuments()).to.equal(3)
      expect([...(await duplicatesIn(insert(1, ['d', 'date'])))]).to.deep.equal([])
    })

    it('fails where the write concern does, although no write failed but for its key', async () => {
      const refused = await refusalOf(duplicatesIn(insert(2, ['a', 'again'], ['b', 'berry'])))
      expect(refused).to.be.instanceOf(Error).with.property('code', 100)
    })
  },
)

describeWithMongo('The MongoDB stores while the database cannot be reached [full]', () => {
  let fresh: FreshDatabase
  let proxy: MongoProxy
  let client: MongoClient

  beforeEach(async () => {
    fresh = await freshDatabase()
    proxy = await startMongoProxy(fresh)
    client = await MongoClient.connect(proxy.uri, SHORT_WAITS)
  })

  afterEach(async () => {
    await proxy?.restore()
    await client?.close()
    await proxy?.close()
    await fresh?.drop()
  })

  async function expectUnavailable() {
    const calls = callsOf(client.db())
    const outcomes = await Promise.allSettled(calls.map(([, call]) => call()))
    const { host } = new URL(proxy.uri)
    for (const [index, outcome] of outcomes.entries()) {
      const name = calls[index]?.[0]
      if (outcome.status === 'fulfilled') throw new Error(`${name} was answered`)
      const { reason } = outcome
      expect(reason, name).to.include({ code: 'ERR_STORE_UNAVAILABLE', name: 'AccountFlowsError' })
      expect(reason.cause, name).to.be.an.instanceof(Error)
      expect(String(reason), name).not.to.include(host)
    }
  }

  async function expectAnswered() {
    const { now } = mongoStore(client.db())
    await eventually('the database is reached again', () => now().catch(() => false))
  }

  for (const [what, breaks, times] of [
    ['connections are refused', () => proxy.sever(), 1],
    ['nothing is ever answered, on old connections and on new ones', () => proxy.stall(), 2],
  ] as const) {
    it(`throw ERR_STORE_UNAVAILABLE where ${what}, and go on afterwards`, async () => {
      await breaks()
      for (let time = 0; time < times; time += 1) await expectUnavailable()
      await proxy.restore()
      await expectAnswered()
    })
  }

  it('throw it once the client is closed', async () => {
    const closed = new MongoClient(proxy.uri)
    await closed.connect()
    await closed.close()
    const failure = await refusalOf(keptOn(closed.db()).settings.read())
    expect(failure).to.include({ code: 'ERR_STORE_UNAVAILABLE' })
    await expectAnswered()
  })

  it('pass on every other error as it is', async () => {
    const users = mongoUsers(client.db().collection('users'))
    const failure = await refusalOf(users.replacePasswordHash('x', 'x', 7 as never))
    expect(failure).to.be.an.instanceof(TypeError)
    await client.db().createCollection('settings', { validator: { version: 'never' } })
    const refusal = await refusalOf(keptOn(client.db()).settings.write({}, 0))
    expect(refusal).to.include({ name: 'MongoBulkWriteError', code: 121 })
    await expectAnswered()
  })
})

describe('One command for many calls', () => {
  const CALLS = Array.from({ length: 350 }, (_, number) => number)
  const never = () => new Promise<number[]>(() => {})

  it('gives each call its own answer, fails for its own callers alone, and goes on', async () => {
    const commands: number[][] = []
    const doubled = together(systemClock, async (numbers: number[]) => {
      commands.push(numbers)
      return numbers.map((number) => 2 * number)
    })
    expect(await Promise.all(CALLS.map(doubled))).to.deep.equal(CALLS.map((number) => 2 * number))
    expect(commands.flat()).to.have.members(CALLS)
    expect(commands.length).to.be.lessThan(10)
    const refuse = together(systemClock, async (numbers: number[]) => {
      if (numbers.includes(1)) throw new Error('refused')
      return numbers
    })
    expect(await refuse(1).catch(String)).to.equal('Error: refused')
    expect(await refuse(2)).to.equal(2)
  })

  it('is held up by a command that hangs for a hundred calls at most', async () => {
    const begun: number[] = []
    const hang = together(systemClock, (numbers: number[]) => {
      begun.push(...numbers)
      return never()
    })
    for (const number of CALLS) {
      void hang(number)
      await new Promise(process.nextTick)
    }
    expect(begun.length).to.be.greaterThan(CALLS.length - 100)
  })

  it('lets nobody wait for a command that takes long', async () => {
    let isFirst = true
    const answered = together(systemClock, async (numbers: number[]) => {
      if (!isFirst) return numbers
      isFirst = false
      return never()
    })
    void answered(1)
    await new Promise(process.nextTick)
    const waits = answered(2)
    await moveTime(1_000)
    expect(await Promise.all([answered(3), waits])).to.deep.equal([3, 2])
  })
})
