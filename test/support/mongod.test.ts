import { expect } from 'chai'
import { MongoServerError } from 'mongodb'
import { setTimeout as delay } from 'node:timers/promises'
import {
  describeWithMongo,
  describeWithReplicaSet,
  freshDatabase,
  type FreshDatabase,
} from './mongod.ts'

/** A MongoDB that was given by its address clears out expired documents once a minute only. */
const TTL_LIMIT = process.env['MONGODB_URI'] ? 90_000 : 15_000

describeWithMongo('the MongoDB of the tests [full]', () => {
  let fresh: FreshDatabase

  before(async () => {
    fresh = await freshDatabase()
  })

  after(() => fresh.drop())

  it('finds the document that was inserted', async () => {
    const users = fresh.db.collection('users')
    const { insertedId } = await users.insertOne({ email: 'ann@example.com' })
    expect(await users.findOne({ email: 'ann@example.com' })).to.deep.equal({
      _id: insertedId,
      email: 'ann@example.com',
    })
  })

  it('refuses a second document with the same unique value', async () => {
    const tokens = fresh.db.collection('tokens')
    await tokens.createIndex({ hash: 1 }, { unique: true })
    await tokens.insertOne({ hash: 'same' })
    const refusal: unknown = await tokens.insertOne({ hash: 'same' }).catch((error) => error)
    expect(refusal).to.be.instanceOf(MongoServerError).with.property('code', 11000)
    expect(await tokens.countDocuments()).to.equal(1)
  })

  it('removes a document after its time, and no other', async function () {
    this.timeout(TTL_LIMIT + 5_000)
    const sessions = fresh.db.collection<{ _id: string; expires_at: Date }>('sessions')
    await sessions.createIndex({ expires_at: 1 }, { expireAfterSeconds: 0 })
    await sessions.insertOne({ _id: 'over', expires_at: new Date() })
    await sessions.insertOne({ _id: 'valid', expires_at: new Date(Date.now() + 3_600_000) })
    const deadline = Date.now() + TTL_LIMIT
    while ((await sessions.countDocuments({ _id: 'over' })) > 0 && Date.now() < deadline) {
      await delay(100)
    }
    expect(await sessions.distinct('_id')).to.deep.equal(['valid'])
  })

  it('gives each suite a database of its own, which is gone after the drop', async () => {
    const other = await freshDatabase()
    await other.db.collection('users').insertOne({ email: 'bob@example.com' })
    const name = other.db.databaseName
    expect(
      await fresh.db.collection('users').countDocuments({ email: 'bob@example.com' }),
    ).to.equal(0)
    expect(new URL(other.uri).pathname).to.equal(`/${name}`)
    await other.drop()
    const { databases } = await fresh.client.db('admin').admin().listDatabases({ nameOnly: true })
    expect(databases.map((database) => database.name)).to.not.include(name)
  })
})

describeWithReplicaSet('the replica set of the tests [full]', () => {
  let fresh: FreshDatabase

  before(async () => {
    fresh = await freshDatabase('replica set')
  })

  after(() => fresh.drop())

  it('makes a transaction that commits visible, and nothing of one that aborts', async () => {
    const accounts = fresh.db.collection<{ _id: string }>('accounts')
    await accounts.insertOne({ _id: 'before' })
    await fresh.client.withSession((session) =>
      session.withTransaction(() => accounts.insertOne({ _id: 'committed' }, { session })),
    )
    await fresh.client.withSession(async (session) => {
      session.startTransaction()
      await accounts.insertOne({ _id: 'aborted' }, { session })
      await session.abortTransaction()
    })
    expect(await accounts.distinct('_id')).to.have.members(['before', 'committed'])
  })

  it('tells a change stream what was inserted', async () => {
    const events = fresh.db.collection<{ _id: string }>('events')
    await fresh.db.createCollection('events')
    const changes = events.watch()
    const next = changes.next()
    await delay(200)
    await events.insertOne({ _id: 'seen' })
    expect(await next)
      .to.include({ operationType: 'insert' })
      .and.to.have.nested.property('documentKey._id', 'seen')
    await changes.close()
  })
})
