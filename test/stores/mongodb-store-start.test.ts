import { expect } from 'chai'
import { MongoClient } from 'mongodb'
import { mongoStore } from '../../src/stores/mongodb/store.ts'
import { createdInTurn } from '../support/created-in-turn.ts'
import { eventually } from '../support/eventually.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import {
  after as later,
  claimOne,
  hour,
  minute,
  mustExist,
  sampleClaim,
  sampleClientLogout,
  sampleMailJob,
  samplePendingLogin,
  sampleResetToken,
  sampleVerificationToken,
} from '../../src/contract/samples.ts'

const TTL_LIMIT = process.env['MONGODB_URI'] ? 90_000 : 15_000

describeWithMongo('mongoStore().start() [full]', function () {
  let fresh: FreshDatabase

  beforeEach(async () => {
    fresh = await freshDatabase()
  })

  afterEach(() => fresh.drop())

  it('creates one set of indexes, when five processes start at once (FLT-13)', async function () {
    this.timeout(60_000)
    const clients = await Promise.all(
      Array.from({ length: 5 }, () => MongoClient.connect(fresh.uri)),
    )
    const databases = await Promise.all(clients.map((client) => createdInTurn(client.db())))
    await Promise.all(databases.map((db) => mongoStore(db).start()))
    for (const client of clients) await client.close()

    const found: Record<string, string[]> = {}
    for (const collection of await fresh.db.collections())
      found[collection.collectionName] = (await collection.indexes()).map(({ name }) => `${name}`)
    const ofResets = [
      '_id_',
      'newest_of_user',
      'token_hash_unique',
      'purge_at_ttl',
      'latest_request',
      'one_live_per_user',
      'unfinished',
    ]
    expect(found).to.deep.equal({
      password_reset_tokens: ofResets,
      invitation_tokens: ofResets,
      email_verification_tokens: ['_id_', 'newest_of_user', 'token_hash_unique', 'purge_at_ttl'],
      pending_logins: ['_id_', 'newest_of_account', 'purge_at_ttl'],
      session_cutoffs: ['_id_'],
      not_me_tokens: ['_id_', 'of_user', 'purge_at_ttl'],
      client_logouts: ['_id_', 'longest_due', 'newest_of_account', 'purge_at_ttl'],
      mail_outbox: ['_id_', 'longest_due', 'newest', 'past_its_life', 'of_account', 'purge_at_ttl'],
      audit_events: [
        '_id_',
        'newest',
        'newest_of_type',
        'newest_of_account',
        'newest_of_identifier',
        'purge_at_ttl',
        'at_ttl',
      ],
      settings: ['_id_'],
      rate_limits: ['_id_', 'key_unique', 'expire_ttl'],
      key_rings: ['_id_', 'noted_at_ttl'],
    })
  })

  it('says which index of which collection is in the way (FLT-20)', async () => {
    const tokens = fresh.db.collection('password_reset_tokens')
    await tokens.createIndex({ purge_at: 1 }, { name: 'purge_at_ttl', expireAfterSeconds: 60 })
    const refusal: unknown = await mongoStore(fresh.db)
      .start()
      .catch((error) => error)
    expect(refusal).to.include({ code: 'ERR_STORE_INDEX' })
    expect(String(refusal)).to.match(/"purge_at_ttl" of the collection "password_reset_tokens"/)
    expect(String(refusal)).to.match(/Drop it/)
    await tokens.dropIndex('purge_at_ttl')
    await mongoStore(fresh.db).start()
  })

  it('never looks through a whole collection', async () => {
    const store = mongoStore(fresh.db)
    await store.start()
    await fresh.db.setProfilingLevel('all')
    const { resetTokens, verificationTokens, pendingLogins, outbox, cutoffs, settings } = store
    const { clientLogouts } = store
    const [reset, verification] = [sampleResetToken(), sampleVerificationToken()]
    await resetTokens.issue(reset)
    await resetTokens.claim(reset.tokenHash, sampleClaim({ at: later(1), leaseUntil: later(2) }))
    await resetTokens.takeUnfinished(later(2), later(3))
    await resetTokens.advance(reset.id, 'used', later(3))
    await resetTokens.advance(reset.id, 'completed', later(3))
    await resetTokens.revoke({ userId: 'ann', upTo: reset }, later(3))
    await verificationTokens.issue(verification)
    await verificationTokens.use(verification, later(1))
    const login = samplePendingLogin()
    await pendingLogins.save(login, 1)
    await pendingLogins.change({ accountId: 'ann' }, { isVoid: true })
    await pendingLogins.find({ accountId: 'ann', browserHash: 'hash' })
    await pendingLogins.change({ id: login.id }, { purgeAt: later(1) })
    await pendingLogins.setTurn(login.id, 'turn', later(1))
    await pendingLogins.setTurn(login.id, 'turn', undefined)
    await pendingLogins.find({ accountId: 'ann', carried: { clientId: 'app' } })
    await pendingLogins.find({ id: login.id })
    await outbox.add(sampleMailJob())
    const job = mustExist(await claimOne(outbox, 'resolve', 1, 1))
    await outbox.resolve(job, 'ann', later(1), later(minute))
    await outbox.requestsOf('ann', job.kind)
    await outbox.supersede(['another'], later(1))
    await outbox.release(job, later(1))
    await outbox.claim('send', 1, later(1), later(2))
    await outbox.claim('expire', 1, later(1), later(2))
    await outbox.giveUpUnreadable(later(1))
    await verificationTokens.revoke({ userId: 'ann', upTo: verification }, later(1))
    await verificationTokens.latestExpiry(later(1))
    await cutoffs.end('ann', 'idp', { id: 'end', at: later(1) })
    await clientLogouts.add([sampleClientLogout()])
    const [told] = await clientLogouts.claim(1, later(1), later(2), ['other'])
    await clientLogouts.settle(mustExist(told), { state: 'sent', at: later(1) })
    await clientLogouts.find({ accountId: 'ann', endId: 'end' })
    await settings.write({}, 0)
    await settings.read()
    await resetTokens.find(reset.tokenHash)
    await resetTokens.ofUser('ann', 10)
    await verificationTokens.find(verification.tokenHash)
    await verificationTokens.ofUser('ann', 10)
    await outbox.list({ id: job.id, limit: 1 }, later(1))
    await outbox.revive(job.id, later(1), later(hour))
    await outbox.discard({ id: job.id }, later(1))
    const queries = [{}, { state: 'dead' }, { state: 'waiting' }, { accountId: 'ann' }] as const
    for (const query of queries) await outbox.list({ ...query, limit: 10 }, later(1))
    await outbox.discard('dead', later(1))
    await store.keyRings.note('process', ['key'])
    await store.keyRings.noted(minute)
    await store.keyRings.note('process', [])
    await store.audit.record({ id: 'event', type: 'email_login_blocked', at: later(0) }, hour)
    await store.audit.list({ id: 'event', limit: 1 })
    for (const query of [
      {},
      { accountId: 'ann' },
      { identifierHash: 'hash' },
      { types: ['email_login_blocked'] },
      { recordedFrom: later(0) },
      { recordedFrom: later(0), accountId: 'ann' },
      { recordedFrom: later(0), identifierHash: 'hash' },
    ] as const)
      await store.audit.list({ ...query, types: ['email_login_blocked'], limit: 10 })
    await store.forget('ann', later(3), 'hash')
    await fresh.db.setProfilingLevel('off')
    const plans = await fresh.db
      .collection('system.profile')
      .find({ planSummary: { $exists: true } })
      .map(({ ns, planSummary }) => `${ns} ${planSummary}`)
      .toArray()
    expect(plans).to.have.length.greaterThan(12)
    expect(plans.filter((plan) => plan.includes('COLLSCAN'))).to.deep.equal([])
    expect(plans.join()).to.match(/mail_outbox IXSCAN { state: 1, available_at: 1/)
    expect(plans.join()).to.match(/password_reset_tokens IXSCAN { lease_until: 1/)
    expect(plans.join()).to.match(/audit_events IXSCAN { account_id: 1, recorded_at: 1/)
    expect(plans.join()).to.match(/IXSCAN { details.identifier_hash: 1, recorded_at: 1/)
    expect(plans.join()).to.match(/email_verification_tokens IXSCAN { user_id: 1, created_at: 1/)
    expect(plans.join()).to.match(/mail_outbox IXSCAN { requested_at: 1/)
    expect(plans.join()).to.match(/client_logouts IXSCAN { state: 1, available_at: 1, client_id/)
    const sorted = { hasSortStage: true, ns: /audit_events|client_logouts/ }
    expect(await fresh.db.collection('system.profile').countDocuments(sorted)).to.equal(0)
  })

  it('has MongoDB remove links eight days after they expired', async function () {
    this.timeout(TTL_LIMIT + 10_000)
    const { start, resetTokens } = mongoStore(fresh.db)
    await start()
    const now = Date.now()
    const expired = (id: string, ago: number) =>
      sampleResetToken({ id, userId: id, expiresAt: new Date(now - ago) })
    await resetTokens.issue(expired('eight days ago', 8 * 24 * hour))
    await resetTokens.issue(expired('almost eight days ago', 8 * 24 * hour - 10 * minute))
    const tokens = fresh.db.collection('password_reset_tokens')
    const isGone = async () => (await tokens.countDocuments()) === 1
    await eventually('the older one is removed', isGone, TTL_LIMIT)
    expect(await tokens.distinct('_id')).to.deep.equal(['almost eight days ago'])
  })

  it('has MongoDB remove events when they say so, and those of a version that does not write it after 400 days (LOG-11)', async function () {
    this.timeout(TTL_LIMIT + 10_000)
    const events = fresh.db.collection<{ _id: string; type: string; at: Date }>('audit_events')
    const daysAgo = (days: number) => new Date(Date.now() - days * 24 * hour)
    const type = 'email_login_blocked'
    await events.insertMany([
      { _id: 'old', type, at: daysAgo(401) },
      { _id: 'old, and not yet', type, at: daysAgo(399) },
    ])
    const { start, audit } = mongoStore(fresh.db)
    await start()
    await audit.record({ id: 'short', type, at: daysAgo(0) }, 0)
    await audit.record({ id: 'long', type, at: daysAgo(500) }, hour)
    const isGone = async () => (await events.countDocuments()) === 2
    await eventually('two are removed', isGone, TTL_LIMIT)
    expect(await events.distinct('_id')).to.deep.equal(['long', 'old, and not yet'])
  })
})
