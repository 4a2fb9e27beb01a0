import { expect } from 'chai'
import { MongoClient, type Db } from 'mongodb'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import {
  sampleClientLogout,
  samplePendingLogin,
  sampleMailJob,
  sampleNotMeToken,
  sampleClaim,
  sampleResetToken,
  sampleVerificationToken,
} from '../../src/contract/samples.ts'
import { mongoAdapter, mongoStore, mongoUsers } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { startMongoProxy, type MongoProxy } from '../support/mongo-proxy.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'

const LIMITS = {
  serverSelectionTimeoutMS: 300,
  connectTimeoutMS: 300,
  socketTimeoutMS: 300,
  heartbeatFrequencyMS: 500,
  minHeartbeatFrequencyMS: 100,
}

/** Every method of a port, called once; a method without an example here fails the test. */
function callsOf(db: Db): Record<string, () => Promise<unknown>> {
  const now = new Date()
  const job = { ...sampleMailJob(), requestedAt: now, attempts: 1, leaseId: 'a lease' }
  const event = { id: 'an event', type: 'sessions_ended', at: now } as const
  const text = 'x'
  const ofResets: [string, unknown[]][] = ['resetTokens', 'invitationTokens'].flatMap(
    (part): [string, unknown[]][] => [
      [`${part}.issue`, [sampleResetToken()]],
      [`${part}.revoke`, [{ id: text }, now]],
      [`${part}.claim`, [text, sampleClaim()]],
      [`${part}.takeUnfinished`, [now, now]],
      [`${part}.advance`, [text, 'used', now]],
      [`${part}.find`, [text]],
      [`${part}.ofUser`, [text, 1]],
    ],
  )
  const examples: Record<string, unknown[]> = {
    ...Object.fromEntries(ofResets),
    'verificationTokens.issue': [sampleVerificationToken()],
    'verificationTokens.latestExpiry': [now],
    'verificationTokens.revoke': [{ userId: text }, now],
    'verificationTokens.use': [sampleVerificationToken(), now],
    'verificationTokens.find': [text],
    'verificationTokens.ofUser': [text, 1],
    'notMeTokens.issue': [sampleNotMeToken()],
    'notMeTokens.find': [text],
    'notMeTokens.block': [text, text],
    'notMeTokens.use': [text, now],
    'pendingLogins.save': [samplePendingLogin(), 1],
    'pendingLogins.find': [{ id: text }],
    'pendingLogins.change': [{ id: text }, { purgeAt: now }],
    'pendingLogins.setTurn': [text, text, now],
    'cutoffs.read': [text],
    'cutoffs.end': [text, 'idp', { id: text, at: now }],
    'outbox.add': [job],
    'outbox.claim': ['send', 1, now, now],
    'outbox.resolve': [job, text, now, now],
    'outbox.requestsOf': [text, 'password_reset'],
    'outbox.supersede': [[text], now],
    'outbox.release': [job, now],
    'outbox.isHeld': [job],
    'outbox.giveUpUnreadable': [now],
    'outbox.remove': [job],
    'outbox.giveUp': [job, now, text],
    'outbox.list': [{ limit: 1 }, now],
    'outbox.revive': [text, now, now],
    'outbox.discard': [{ id: text }, now],
    'clientLogouts.add': [[sampleClientLogout()]],
    'clientLogouts.claim': [1, now, now, []],
    'clientLogouts.settle': [
      { ...sampleClientLogout(), leaseId: text },
      { state: 'sent', at: now },
    ],
    'clientLogouts.find': [{ accountId: text }],
    'limits.hit': [text, 1_000],
    'limits.peek': [text],
    'limits.giveBack': [text],
    'audit.record': [event, 1],
    'audit.list': [{ limit: 1 }],
    'settings.read': [],
    'settings.write': [{}, 0],
    'keyRings.note': [text, [text]],
    'keyRings.noted': [1_000],
    'store.start': [],
    'store.now': [],
    'store.inspect': [],
    'store.forget': [text, now, text],
    'users.start': [],
    'users.findById': [text],
    'users.findByUsername': [text],
    'users.findByUsernameInAnyCase': [text],
    'users.findByVerifiedEmail': [text],
    'users.findByEmail': [text],
    'users.replacePasswordHash': [text, text, text],
    'users.setFirstPassword': [text, text, text],
    'users.markEmailVerified': [text, text],
    'users.markEmailUnverified': [text, text],
    'adapters.start': [],
    'adapter.upsert': [text, {}, 60],
    'adapter.find': [text],
    'adapter.findByUid': [text],
    'adapter.findByUserCode': [text],
    'adapter.consume': [text],
    'adapter.destroy': [text],
    'adapter.revokeByGrantId': [text],
    'adapter.destroyByAccountId': [text, () => true],
  }
  const store = mongoStore(db)
  const adapters = mongoAdapter(db)
  const box = createSecretBox(createKeyRing([Buffer.alloc(32)]))
  const ports: Record<string, object> = {
    ...store,
    store,
    users: mongoUsers(db.collection('users')),
    adapters: { start: () => adapters.start(box) },
    adapter: adapters('Session', box),
  }
  const ofTheWholeStore = new Set(['start', 'wrongIndexes', 'forget'])
  const calls: Record<string, () => Promise<unknown>> = {}
  for (const [portName, port] of Object.entries(ports)) {
    for (const name of Object.keys(port)) {
      const method: unknown = Reflect.get(port, name)
      const example = examples[`${portName}.${name}`]
      if (typeof method !== 'function' || (ofTheWholeStore.has(name) && !example)) continue
      if (!example) throw new TypeError(`no example of ${portName}.${name}`)
      calls[`${portName}.${name}`] = async () => Reflect.apply(method, port, example)
    }
  }
  return calls
}

describeWithMongo('The MongoDB stores while the database cannot be reached [full]', () => {
  let fresh: FreshDatabase
  let proxy: MongoProxy
  let client: MongoClient

  beforeEach(async () => {
    fresh = await freshDatabase()
    proxy = await startMongoProxy(fresh)
    client = await MongoClient.connect(proxy.uri, LIMITS)
  })

  afterEach(async () => {
    await proxy?.restore()
    await client?.close()
    await proxy?.close()
    await fresh?.drop()
  })

  async function expectUnavailable() {
    const calls = Object.entries(callsOf(client.db()))
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
    await eventually('the database is reached again', () =>
      mongoStore(client.db())
        .now()
        .catch(() => false),
    )
  }

  it('throw ERR_STORE_UNAVAILABLE where connections are refused, and go on afterwards', async () => {
    await proxy.sever()
    await expectUnavailable()
    await proxy.restore()
    await expectAnswered()
  })

  it('throw it where nothing is ever answered, on old connections and on new ones', async () => {
    proxy.stall()
    await expectUnavailable()
    await expectUnavailable()
    await proxy.restore()
    await expectAnswered()
  })

  it('throw it once the client is closed', async () => {
    const closed = new MongoClient(proxy.uri, LIMITS)
    await closed.connect()
    await closed.close()
    const failure = await mongoStore(closed.db())
      .settings.read()
      .catch((error: unknown) => error)
    expect(failure).to.include({ code: 'ERR_STORE_UNAVAILABLE' })
    await expectAnswered()
  })

  it('pass on every other error as it is', async () => {
    const [first, ...others] = await Promise.allSettled([
      mongoUsers(client.db().collection('users')).replacePasswordHash('x', 'x', 7 as never),
      refusedByTheServer(),
    ])
    expect(first).to.have.property('reason').that.is.an.instanceof(TypeError)
    expect(others[0])
      .to.have.property('reason')
      .that.includes({ name: 'MongoServerError', code: 121 })
    await expectAnswered()
  })

  async function refusedByTheServer() {
    await client.db().createCollection('settings', { validator: { version: 'never' } })
    await mongoStore(client.db()).settings.write({}, 0)
  }
})
