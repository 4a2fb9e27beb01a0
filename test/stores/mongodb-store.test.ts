import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import { MongoClient } from 'mongodb'
import { mongoStore } from '../../src/stores/mongodb-store.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { itIsAnAccountFlowsStore } from '../support/store-contract.ts'
import {
  after as later,
  hour,
  minute,
  mustExist,
  sampleMailJob,
  samplePendingLogin,
  sampleResetToken,
  sampleVerificationToken,
} from '../support/store-contract-samples.ts'

interface AnyDocument {
  _id: string
  [field: string]: unknown
}

const TTL_LIMIT = process.env['MONGODB_URI'] ? 90_000 : 15_000

describeWithMongo('mongoStore()', () => {
  let fresh: FreshDatabase

  before(async () => {
    fresh = await freshDatabase()
  })

  after(() => fresh.drop())

  function stored(name: string) {
    return fresh.db.collection<AnyDocument>(name)
  }

  /** Emptied, not dropped: MongoDB under Wine takes its time over new collections. */
  async function emptyStore() {
    for (const collection of await fresh.db.collections()) await collection.deleteMany({})
    return mongoStore(fresh.db)
  }

  itIsAnAccountFlowsStore('mongoStore()', async () => ({
    store: await emptyStore(),
    close: async () => {},
  }))

  describe('what is stored', () => {
    it('is nothing of a reset token but its hash, in the fields of D4', async () => {
      const { resetTokens } = await emptyStore()
      const { carried: _, ...token } = sampleResetToken()
      await resetTokens.issue({ ...token, carried: { state: '' } })
      expect(await stored('password_reset_tokens').findOne()).to.deep.equal({
        _id: token.id,
        token_hash: token.tokenHash,
        user_id: 'ann',
        email: 'Ann@example.com',
        password_digest: 'digest',
        state: '',
        created_at: token.createdAt,
        expires_at: token.expiresAt,
        used_at: null,
        claimed_at: null,
        invalidated_at: null,
        completed_at: null,
        purge_at: new Date(token.expiresAt.getTime() + 7 * 24 * hour),
        live: true,
      })
    })

    it('holds no new password hash once the reset is used or rejected', async () => {
      const { resetTokens } = await emptyStore()
      for (const end of ['markUsed', 'reject'] as const) {
        const { id, tokenHash } = sampleResetToken()
        await resetTokens.issue({ ...sampleResetToken(), id, tokenHash })
        await resetTokens.claim(tokenHash, 'next', later(1), later(minute))
        expect(await stored('password_reset_tokens').findOne({ _id: id })).to.include({
          new_hash: 'next',
        })
        await resetTokens[end](id, later(2))
        expect(await stored('password_reset_tokens').findOne({ _id: id })).not.to.have.property(
          'new_hash',
        )
      }
    })

    it('holds no typed identifier once the job is resolved or given up', async () => {
      const { outbox } = await emptyStore()
      await outbox.add(sampleMailJob())
      const job = mustExist(await outbox.claim('lease', later(1), later(minute)))
      expect(await stored('mail_outbox').findOne()).to.include({ identifier: 'ann' })
      await outbox.resolve(job, 'id of ann')
      expect(await stored('mail_outbox').findOne()).not.to.have.property('identifier')

      await stored('mail_outbox').updateOne({}, { $set: { identifier: 'ann' } })
      await outbox.giveUp(job, later(2), 'no such mailbox')
      const dead = mustExist((await stored('mail_outbox').findOne()) ?? undefined)
      expect(dead).to.deep.include({
        state: 'dead',
        reason: 'no such mailbox',
        account_id: 'id of ann',
        purge_at: new Date(later(2).getTime() + 7 * 24 * hour),
      })
      expect(dead).not.to.have.any.keys('identifier', 'lease_id', 'available_at')
    })
  })

  describe('a damaged record', () => {
    const wrong = [null, '', 1, true, {}, [later(hour)], [null], [true]]
    const optional = ['pending_login_id', 'client_id', 'redirect_uri', 'scope', 'state']

    /** Every field, each once missing and once with each value of another type. */
    function* damaged({ _id, ...document }: AnyDocument): Generator<AnyDocument> {
      for (const [field, right] of Object.entries(document)) {
        const { [field]: _, ...rest } = document
        if (!optional.includes(field)) yield { _id, ...rest }
        for (const value of [...wrong, [right]])
          if (typeof value !== typeof right || right === null || right instanceof Date)
            if (value !== right) yield { _id, ...rest, [field]: value }
        if (typeof right === 'object') yield { _id, ...rest, [field]: new Date().toISOString() }
      }
    }

    it('is no usable reset token, and nobody can claim it (TOK-04, TOK-07)', async () => {
      const { resetTokens } = await emptyStore()
      const token = sampleResetToken()
      await resetTokens.issue(token)
      const tokens = stored('password_reset_tokens')
      const document = mustExist((await tokens.findOne()) ?? undefined)
      let count = 0
      for (const each of damaged(document)) {
        count += 1
        await tokens.deleteMany({})
        await tokens.insertOne(each)
        const found = await resetTokens.findUsable(token.tokenHash, later(1))
        const claim = await resetTokens.claim(token.tokenHash, 'next', later(1), later(minute))
        expect([found, claim], JSON.stringify(each)).to.deep.equal([undefined, undefined])
      }
      expect(count).to.be.greaterThan(100)
    })

    it('is no usable verification token', async () => {
      const { verificationTokens } = await emptyStore()
      const token = sampleVerificationToken()
      await verificationTokens.issue(token)
      const tokens = stored('email_verification_tokens')
      const document = mustExist((await tokens.findOne()) ?? undefined)
      for (const each of damaged(document)) {
        await tokens.deleteMany({})
        await tokens.insertOne(each)
        const found = await verificationTokens.findUsable(token.tokenHash, later(1))
        expect(found, JSON.stringify(each)).to.equal(undefined)
      }
    })

    it('is no pending login, no job, and does not hold up the others', async () => {
      const { pendingLogins, outbox, resetTokens } = await emptyStore()
      const { id } = samplePendingLogin()
      await pendingLogins.save({ ...samplePendingLogin(), id })
      for (const captured of ['{', '[]', '{"params":{},"login":{"accountId":1,"ts":1}}', 1, null]) {
        await stored('pending_logins').updateOne({ _id: id }, { $set: { captured } })
        expect(await pendingLogins.find(id)).to.equal(undefined)
      }

      await outbox.add(sampleMailJob({ id: 'damaged' }))
      await stored('mail_outbox').updateOne({}, { $set: { 'carried.state': 1 } })
      await delay(3)
      await outbox.add(sampleMailJob({ id: 'sound' }))
      expect(await outbox.claim('lease', later(1), later(minute))).to.include({ id: 'sound' })

      for (const each of ['damaged', 'sound']) {
        const token = sampleResetToken({ id: each, userId: each })
        await resetTokens.issue(token)
        await resetTokens.claim(token.tokenHash, 'next', later(1), later(minute))
      }
      await stored('password_reset_tokens').updateOne({ _id: 'damaged' }, { $set: { new_hash: 1 } })
      const taken = await resetTokens.takeUnfinished(later(minute), later(hour))
      expect(taken).to.include({ id: 'sound' })
      expect(await resetTokens.takeUnfinished(later(minute), later(hour))).to.equal(undefined)
    })

    it('is no cut-off that lets sessions live', async () => {
      const { cutoffs } = await emptyStore()
      await stored('session_cutoffs').insertOne({ _id: 'ann', idp_at: 'yesterday' })
      const refusal: unknown = await cutoffs.read('ann').catch((error) => error)
      expect(refusal).to.be.instanceOf(TypeError)
      await cutoffs.endIdpSessions('ann', later(1))
      expect(await cutoffs.read('ann')).to.deep.equal({ idpAt: later(1), oauthAt: undefined })
    })

    it('of settings answers the values that are strings, and can be written again', async () => {
      const { settings } = await emptyStore()
      for (const document of [
        { version: '7', values: { smtp_host: 'mail.example', smtp_port: 587, smtp_from: null } },
        { values: { smtp_host: 'mail.example', nested: { $gt: '' }, list: ['x'] } },
        { version: null, values: { smtp_host: 'mail.example' } },
      ]) {
        await stored('settings').replaceOne({ _id: 'settings' }, document, { upsert: true })
        const values = { smtp_host: 'mail.example' }
        expect(await settings.read()).to.deep.equal({ version: 0, values })
        expect(await settings.version()).to.equal(0)
        expect(await settings.write({}, 0)).to.equal(true)
        expect(await settings.read()).to.deep.equal({ version: 1, values: {} })
      }
      for (const values of ['text', ['a'], null, 1]) {
        await stored('settings').replaceOne({ _id: 'settings' }, { version: 3, values })
        expect(await settings.read()).to.deep.equal({ version: 3, values: {} })
      }
    })
  })

  it('lets nothing but a string or a valid time into a filter (INJ-05)', async () => {
    const { resetTokens, verificationTokens, outbox } = await emptyStore()
    await resetTokens.issue(sampleResetToken())
    await outbox.add(sampleMailJob())
    const notText: unknown[] = [undefined, null, { $ne: '' }, /./, ['x'], 1, '\ud800']
    for (const each of notText) {
      // @ts-expect-error: a caller without types
      const value: string = each
      for (const act of [
        () => resetTokens.findUsable(value, later(1)),
        () => resetTokens.claim(value, 'next', later(1), later(minute)),
        () => resetTokens.invalidateLive(value, later(1)),
        () => verificationTokens.hasUsed(value, 'x'),
        () => outbox.claim(value, later(1), later(minute)),
      ]) {
        const refusal: unknown = await act().catch((error) => error)
        expect(refusal, String(act)).to.be.instanceOf(TypeError)
      }
    }
    const { tokenHash } = sampleResetToken()
    const refusal: unknown = await resetTokens
      .findUsable(tokenHash, new Date('invalid'))
      .catch((error) => error)
    expect(refusal).to.be.instanceOf(TypeError)
  })

  it('works the same whatever the host chose for its Db', async () => {
    await emptyStore()
    const odd = fresh.client.db(fresh.db.databaseName, {
      ignoreUndefined: true,
      promoteValues: false,
      useBigInt64: false,
      raw: true,
      readPreference: 'secondaryPreferred',
      writeConcern: { w: 0 },
    })
    const { settings, outbox } = mongoStore(odd)
    expect(await settings.write({ smtp_host: 'a' }, 0)).to.equal(true)
    expect(await settings.read()).to.deep.equal({ version: 1, values: { smtp_host: 'a' } })
    await outbox.add(sampleMailJob())
    expect(await outbox.claim('lease', later(1), later(minute))).to.include({ attempts: 1 })
    expect(await mongoStore(odd).now()).to.be.instanceOf(Date)
  })
})

describeWithMongo('mongoStore().start()', function () {
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
    await Promise.all(clients.map((client) => mongoStore(client.db()).start()))
    for (const client of clients) await client.close()

    const found: Record<string, string[]> = {}
    for (const collection of await fresh.db.collections())
      found[collection.collectionName] = (await collection.indexes()).map(({ name }) => `${name}`)
    expect(found).to.deep.equal({
      password_reset_tokens: [
        '_id_',
        'token_hash_unique',
        'purge_at_ttl',
        'one_live_per_user',
        'unfinished',
      ],
      email_verification_tokens: ['_id_', 'token_hash_unique', 'purge_at_ttl', 'used_links'],
      pending_logins: ['_id_', 'newest_of_account', 'purge_at_ttl'],
      session_cutoffs: ['_id_'],
      mail_outbox: ['_id_', 'oldest_first', 'purge_at_ttl'],
      audit_events: ['_id_', 'at', 'account_id'],
      settings: ['_id_'],
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
    const [reset, verification] = [sampleResetToken(), sampleVerificationToken()]
    await resetTokens.issue(reset)
    await resetTokens.findUsable(reset.tokenHash, later(1))
    await resetTokens.claim(reset.tokenHash, 'next', later(1), later(2))
    await resetTokens.takeUnfinished(later(2), later(3))
    await resetTokens.markUsed(reset.id, later(3))
    await resetTokens.complete(reset.id, later(3))
    await verificationTokens.issue(verification)
    await verificationTokens.findUsable(verification.tokenHash, later(1))
    await verificationTokens.markUsed(verification.id, later(1))
    await verificationTokens.hasUsed('ann', 'Ann@example.com')
    await pendingLogins.save(samplePendingLogin())
    await pendingLogins.findNewest('ann', { clientId: 'app' })
    await outbox.add(sampleMailJob())
    await outbox.claim('lease', later(1), later(2))
    await cutoffs.endIdpSessions('ann', later(1))
    await settings.write({}, 0)
    await settings.version()
    await fresh.db.setProfilingLevel('off')
    const plans = await fresh.db
      .collection('system.profile')
      .find({ planSummary: { $exists: true } })
      .map(({ ns, planSummary }) => `${ns} ${planSummary}`)
      .toArray()
    expect(plans).to.have.length.greaterThan(12)
    expect(plans.filter((plan) => plan.includes('COLLSCAN'))).to.deep.equal([])
    expect(plans.join()).to.match(/mail_outbox IXSCAN { state: 1, requested_at: 1/)
    expect(plans.join()).to.match(/password_reset_tokens IXSCAN { lease_until: 1/)
  })

  it('has MongoDB remove records a week after they expired', async function () {
    this.timeout(TTL_LIMIT + 10_000)
    const { start, resetTokens } = mongoStore(fresh.db)
    await start()
    const now = Date.now()
    const expired = (id: string, ago: number) =>
      sampleResetToken({ id, userId: id, expiresAt: new Date(now - ago) })
    await resetTokens.issue(expired('a week ago', 7 * 24 * hour))
    await resetTokens.issue(expired('almost a week ago', 7 * 24 * hour - 10 * minute))
    const tokens = fresh.db.collection<AnyDocument>('password_reset_tokens')
    const deadline = Date.now() + TTL_LIMIT
    while ((await tokens.countDocuments()) > 1 && Date.now() < deadline) await delay(100)
    expect(await tokens.distinct('_id')).to.deep.equal(['almost a week ago'])
  })
})
