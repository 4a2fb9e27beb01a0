import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { mailsTo } from '../support/blocked-login.ts'
import { eventually } from '../support/eventually.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { databaseOf, eventsOf } from '../support/observe.ts'
import { createUserAgent } from '../support/user-agent.ts'

const LIMIT = 10
const CAP = 3

const post = (h: Harness, address: string, identifier: string) =>
  createUserAgent().post(
    `${h.oauthUrl}/forgot-password`,
    { identifier },
    { 'x-forwarded-for': address },
  )

describeWithMongo('Limits of two processes on one database (D21, RATE-10) [full]', () => {
  let database: FreshDatabase
  const harnesses: Harness[] = []

  before(async function () {
    this.timeout(120_000)
    database = await freshDatabase()
    const secrets = [randomBytes(32)]
    for (let count = 0; count < 2; count += 1) {
      harnesses.push(
        await startHarness({
          technology: 'mongodb',
          database: { db: database.db, drop: async () => {} },
          settings: {
            requests_per_ip_per_minute: String(LIMIT),
            mails_per_account_per_hour: String(CAP),
          },
          flows: { trustedProxies: 1, secrets },
        }),
      )
    }
  })
  after(async () => {
    for (const h of harnesses) await h.close()
    await database?.drop()
  })

  it(`pass exactly ${LIMIT} forms of a burst over both, audited once`, async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        post(harnesses[index % 2] as Harness, '2001:db8::1', 'nobody'),
      ),
    )
    const statuses = answers.map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).to.have.length(LIMIT)
    expect(statuses.filter((status) => status === 429)).to.have.length(50 - LIMIT)
    const events = database.db.collection('audit_events')
    expect(await events.countDocuments({ reason: 'too_many_requests' })).to.equal(1)
  })

  it('pass no more mails to one account than its cap, and leave one link that works', async () => {
    const [one, other] = harnesses as [Harness, Harness]
    const user = await one.addUser({ username: 'Bombed-account' })
    await Promise.all(
      Array.from({ length: 40 }, (_, index) =>
        post(index % 2 === 0 ? one : other, `198.51.100.${index}`, 'Bombed-account'),
      ),
    )
    await eventually(
      'every request is decided about',
      () =>
        [one, other].flatMap((h) => eventsOf(h, 'password_reset_requested', user)).length === 40,
      20_000,
    )
    // A harness has a mail server of its own; the settings name that of the first.
    await eventually('the outbox is empty', async () => {
      return (await database.db.collection('mail_outbox').countDocuments({})) === 0
    })
    expect(mailsTo(one, user)).to.be.within(1, CAP + 1)
    const { link } = await one.mail.mailTo(user.email ?? '', mailsTo(one, user))
    expect((await one.reset(link, 'a new password')).mode).to.equal('done')
  })

  it('keep counts that end by themselves, and nothing that a person could be known by', async () => {
    const [h] = harnesses as [Harness]
    const limits = databaseOf(h).collection('rate_limits')
    const indexes = await limits.indexes()
    expect(
      indexes.map(({ key, unique, expireAfterSeconds }) => ({ key, unique, expireAfterSeconds })),
    )
      .to.deep.include({ key: { key: 1 }, unique: true, expireAfterSeconds: undefined })
      .and.to.deep.include({ key: { expire: 1 }, unique: undefined, expireAfterSeconds: 0 })
    const before = await limits.countDocuments()
    await h.put({ requests_per_ip_per_minute: '0' })
    await Promise.all(
      Array.from({ length: 40 }, (_, index) => post(h, '203.0.113.1', `nobody ${index}`)),
    )
    await h.put({ requests_per_ip_per_minute: String(LIMIT) })
    for (let count = 0; count < LIMIT + 2; count += 1)
      await post(h, '203.0.113.1', `nobody ${count}`)
    expect(await limits.countDocuments()).to.equal(before + 1)
    for (const { key, expire } of await limits.find().toArray()) {
      expect(key).to.match(
        /^(requests:[\da-f.:]+(\/64)?|mails:(all|[a-z_]+:([a-z_]+:)?[\w-]{43}(:\d+)?))$/,
      )
      expect(expire).to.be.instanceOf(Date)
      expect(expire.getTime()).to.be.below(Date.now() + 3_600_000)
    }
    const stored = JSON.stringify(await limits.find().toArray()).toLowerCase()
    expect(stored).not.to.include('bombed').and.not.to.include('users.example')
  })

  it('count anew where a record was damaged', async () => {
    const [h] = harnesses as [Harness]
    const limits = databaseOf(h).collection('rate_limits')
    for (const [index, damage] of [
      { $unset: { expire: true } },
      { $set: { expire: null } },
      { $set: { expire: new Date(Date.now() + 86_400_000) } },
      { $unset: { points: true } },
    ].entries()) {
      const address = `192.0.2.${index}`
      for (let count = 0; count <= LIMIT; count += 1) await post(h, address, 'nobody')
      expect((await post(h, address, 'nobody')).status).to.equal(429)
      await limits.updateOne({ key: `requests:${address}` }, damage)
      expect((await post(h, address, 'nobody')).status, JSON.stringify(damage)).to.equal(200)
      const again = await limits.findOne({ key: `requests:${address}` })
      expect(again).to.deep.include({ points: 1 })
    }
  })
})
