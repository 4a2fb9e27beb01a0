import { EventEmitter, once } from 'node:events'
import { expect } from 'chai'
import type { AdapterPayload } from 'oidc-provider'
import { memoryAdapter, mongoAdapter, type AccountAdapter } from '../../src/index.ts'
import { accountOf, addVerified } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { startHarness } from '../support/harness.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { outcomeOf } from '../support/oauth-requests.ts'
import { moveTime, resetTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

type Factory = (model: string) => AccountAdapter

/** A MongoDB that was given by its address clears out expired documents once a minute only. */
const TTL_LIMIT = process.env['MONGODB_URI'] ? 90_000 : 15_000
const HOUR = 3600

/** Keys that are words to a database, and a client that is named with dots. */
const AWKWARD: AdapterPayload = JSON.parse(`{
  "authorizations": { "https://client.example/a.b": { "sid": "1", "grantId": "g" } },
  "claims": { "id_token": { "$where": null, "a.b": { "$set": [1, null, { "": true }] } } },
  "resources": { "urn:a.b.$c": "read write" },
  "params": { "state": "$x.y", "__proto__": { "polluted": true }, "ui_locales": "d\u00e9 \ud83d\ude00" }
}`)

/** What oidc-provider and `flows.adapter` rely on. */
function itIsAnAdapter(create: () => Promise<Factory>, tierOfTimes = ''): void {
  let of: Factory

  beforeEach(async () => {
    of = await create()
  })

  it('finds nothing under an id that it was never given', async () => {
    expect(await of('Session').find('unknown')).to.equal(undefined)
    expect(await of('Session').findByUid('unknown')).to.equal(undefined)
    expect(await of('DeviceCode').findByUserCode('unknown')).to.equal(undefined)
  })

  it('finds a payload as it was saved, in the model that it was saved for', async () => {
    await of('Session').upsert('1', { jti: '1', accountId: 'ann', loginTs: 5 }, HOUR)
    expect(await of('Session').find('1')).to.deep.equal({ jti: '1', accountId: 'ann', loginTs: 5 })
    expect(await of('Interaction').find('1')).to.equal(undefined)
  })

  it('keeps clients with dots in their ids, and keys with dollar signs', async () => {
    await of('Session').upsert('1', AWKWARD, HOUR)
    const found = await of('Session').find('1')
    expect(JSON.stringify(found)).to.equal(JSON.stringify(AWKWARD))
    expect(Reflect.get({}, 'polluted')).to.equal(undefined)
  })

  it('replaces the whole payload, and nothing of the former one stays', async () => {
    await of('Session').upsert('1', { accountId: 'ann', amr: ['pwd'], uid: 'u1' }, HOUR)
    await of('Session').upsert('1', { accountId: 'ann', uid: 'u2' }, HOUR)
    expect(await of('Session').find('1')).to.deep.equal({ accountId: 'ann', uid: 'u2' })
    expect(await of('Session').findByUid('u1')).to.equal(undefined)
  })

  it('leaves out what is undefined', async () => {
    await of('Session').upsert('1', { accountId: 'ann', acr: undefined }, HOUR)
    expect(JSON.stringify(await of('Session').find('1'))).to.equal('{"accountId":"ann"}')
  })

  it('gives away copies only', async () => {
    const payload = { accountId: 'ann', amr: ['pwd'] }
    await of('Session').upsert('1', payload, HOUR)
    payload.amr.push('changed')
    const found = await of('Session').find('1')
    if (found) found.accountId = 'changed'
    expect(await of('Session').find('1')).to.deep.equal({ accountId: 'ann', amr: ['pwd'] })
  })

  it('finds sessions by uid, and device codes by user code', async () => {
    await of('Session').upsert('1', { uid: 'u1' }, HOUR)
    await of('Session').upsert('2', { uid: 'u2' }, HOUR)
    await of('DeviceCode').upsert('3', { userCode: 'ABCD' }, HOUR)
    expect(await of('Session').findByUid('u2')).to.deep.equal({ uid: 'u2' })
    expect(await of('DeviceCode').findByUserCode('ABCD')).to.deep.equal({ userCode: 'ABCD' })
    expect(await of('DeviceCode').findByUserCode('abcd')).to.equal(undefined)
  })

  it('marks what is consumed with the second, and keeps the rest', async () => {
    const second = Math.floor(Date.now() / 1000)
    await of('AuthorizationCode').upsert('1', { grantId: 'g', exp: 9 }, HOUR)
    await of('AuthorizationCode').consume('1')
    const { consumed, ...rest } = (await of('AuthorizationCode').find('1')) ?? {}
    expect(rest).to.deep.equal({ grantId: 'g', exp: 9 })
    expect(consumed).to.be.a('number').that.is.at.least(second)
  })

  it('makes no record of consuming or destroying what is not there', async () => {
    await of('AuthorizationCode').consume('unknown')
    await of('AuthorizationCode').destroy('unknown')
    expect(await of('AuthorizationCode').find('unknown')).to.equal(undefined)
  })

  it('destroys one record', async () => {
    for (const id of ['1', '2']) await of('Session').upsert(id, { uid: id }, HOUR)
    await of('Session').destroy('1')
    expect(await of('Session').find('1')).to.equal(undefined)
    expect(await of('Session').findByUid('1')).to.equal(undefined)
    expect(await of('Session').find('2')).to.deep.equal({ uid: '2' })
  })

  it('revokes what belongs to a grant, model by model', async () => {
    for (const model of ['AccessToken', 'RefreshToken']) {
      for (const [id, grantId] of [
        ['1', 'g'],
        ['2', 'g'],
        ['3', 'other'],
      ] as const) {
        await of(model).upsert(id, { grantId }, HOUR)
      }
    }
    await of('AccessToken').revokeByGrantId('g')
    expect(await of('AccessToken').find('1')).to.equal(undefined)
    expect(await of('AccessToken').find('2')).to.equal(undefined)
    expect(await of('AccessToken').find('3')).to.deep.equal({ grantId: 'other' })
    expect(await of('RefreshToken').find('1')).to.deep.equal({ grantId: 'g' })
  })

  it('destroys those records of an account that are ended, and counts them', async () => {
    for (const accountId of ['ann', 'bob']) {
      for (const loginTs of [1, 2, 3]) {
        const id = `${accountId} ${loginTs}`
        await of('Session').upsert(id, { uid: id, accountId, loginTs }, HOUR)
      }
    }
    const isEnded = ({ accountId, loginTs = 0 }: AdapterPayload) =>
      accountId === 'ann' && loginTs <= 2
    expect(await of('Session').destroyByAccountId('ann', isEnded)).to.equal(2)
    expect(await of('Session').destroyByAccountId('ann', isEnded)).to.equal(0)
    expect(await of('Session').find('ann 2')).to.equal(undefined)
    expect(await of('Session').find('ann 3')).to.include({ loginTs: 3 })
    expect(await of('Session').find('bob 1')).to.include({ loginTs: 1 })
  })

  it('finds the login results of an account, held back before the consent page and behind it', async () => {
    const login = { accountId: 'ann', ts: 1 }
    await of('Interaction').upsert('held', { result: { login } }, HOUR)
    await of('Interaction').upsert('parked', { lastSubmission: { login } }, HOUR)
    await of('Interaction').upsert('open', { params: {} }, HOUR)
    const isEnded = ({ result, lastSubmission }: AdapterPayload) =>
      (result?.login ?? lastSubmission?.['login']) !== undefined
    expect(await of('Interaction').destroyByAccountId('ann', isEnded)).to.equal(2)
    expect(await of('Interaction').find('held')).to.equal(undefined)
    expect(await of('Interaction').find('parked')).to.equal(undefined)
    expect(await of('Interaction').find('open')).to.deep.equal({ params: {} })
  })

  it('keeps 20 records that are saved at once', async () => {
    const ids = Array.from({ length: 20 }, (_, i) => String(i))
    await Promise.all(ids.map((id) => of('Session').upsert(id, { uid: id }, HOUR)))
    const found = await Promise.all(ids.map((id) => of('Session').find(id)))
    expect(found.map((payload) => payload && payload.uid)).to.deep.equal(ids)
  })

  it(`forgets a record after its time, and keeps one that has none${tierOfTimes}`, async function () {
    this.timeout(TTL_LIMIT + 5_000)
    await of('Session').upsert('short', { uid: 'short' }, 1)
    await of('Session').upsert('long', { uid: 'long' }, HOUR)
    await of('Client').upsert('for ever', { client_id: 'for ever' }, undefined)
    // MongoDB waits for its own time.
    await moveTime(1_001)
    const gone = async () => (await of('Session').find('short')) === undefined
    await eventually('the record is gone', gone, TTL_LIMIT)
    expect(await of('Session').findByUid('short')).to.equal(undefined)
    expect(await of('Session').find('long')).to.deep.equal({ uid: 'long' })
    expect(await of('Client').find('for ever')).to.deep.equal({ client_id: 'for ever' })
  })
}

onBothStores('Two windows of one browser', (technology) => {
  it('may save the same session at once, while one of them gives it a new id: both are answered', async () => {
    const gate = new EventEmitter()
    let isHeldUp = false
    const h = await startHarness({
      technology,
      provider: {
        async findAccount(_ctx, sub) {
          const waits = isHeldUp
          isHeldUp = false
          if (waits) gate.emit('arrived')
          if (waits) await once(gate, 'opened')
          return { accountId: sub, claims: () => ({ sub }) }
        },
      },
    })
    try {
      const [user, agent] = [await addVerified(h), createUserAgent()]
      await h.signIn(agent, user.username)
      const { url } = await h.party.begin({ prompt: 'login' })
      const login = await h.login(agent, url, user.username)
      isHeldUp = true
      const arrived = once(gate, 'arrived')
      const inFlight = agent.get((await h.party.begin()).url)
      await arrived
      expect(outcomeOf(await h.follow(agent, login))).to.equal('code')
      gate.emit('opened')
      expect(outcomeOf(await inFlight)).to.equal('code')
      expect(await accountOf(h, agent)).to.equal(user.id)
    } finally {
      await h.close()
    }
  })
})

describe('memoryAdapter()', () => {
  itIsAnAdapter(async () => memoryAdapter())

  it('shares nothing with another one', async () => {
    await memoryAdapter()('Session').upsert('1', { uid: '1' }, HOUR)
    expect(await memoryAdapter()('Session').find('1')).to.equal(undefined)
  })
})

describeWithMongo('mongoAdapter()', () => {
  let fresh: FreshDatabase

  before(async () => {
    resetTime()
    fresh = await freshDatabase()
    await mongoAdapter(fresh.db).start()
  })

  after(() => fresh.drop())

  itIsAnAdapter(async () => {
    for (const collection of await fresh.db.collections()) await collection.deleteMany({})
    return mongoAdapter(fresh.db)
  }, ' [full]')

  it('keeps one collection a model in snake_case, with { _id, payload, expiresAt }', async () => {
    const before = Date.now()
    await mongoAdapter(fresh.db)('PushedAuthorizationRequest').upsert('1', { request: 'r' }, 60)
    const stored = await fresh.db.collection('pushed_authorization_request').find().toArray()
    const { expiresAt, ...rest } = stored[0] ?? { expiresAt: undefined }
    expect(rest).to.deep.equal({ _id: '1', payload: { request: 'r' } })
    expect(expiresAt).to.be.instanceOf(Date)
    expect((expiresAt as Date).getTime()).to.be.at.least(before + 60_000)
  })

  it('has indexes by account, by grant and by time, and can be started again', async () => {
    await mongoAdapter(fresh.db).start()
    for (const name of ['session', 'refresh_token', 'interaction']) {
      const indexes = await fresh.db.collection(name).indexes()
      const ttl = indexes.find(({ key }) => 'expiresAt' in key)
      expect(ttl).to.include({ expireAfterSeconds: 0 })
    }
    const keysOf = async (name: string) =>
      (await fresh.db.collection(name).indexes()).flatMap(({ key }) => Object.keys(key))
    expect(await keysOf('session')).to.include.members(['payload.uid', 'payload.accountId'])
    expect(await keysOf('grant')).to.include.members(['payload.accountId'])
    expect(await keysOf('refresh_token')).to.include.members(['payload.grantId'])
    expect(await keysOf('interaction')).to.include.members(['payload.result.login.accountId'])
  })

  it('takes an id that is no text for no query', async () => {
    await mongoAdapter(fresh.db)('Session').upsert('1', { uid: '1' }, HOUR)
    const anything = { $ne: null } as never
    expect(await mongoAdapter(fresh.db)('Session').find(anything)).to.equal(undefined)
    expect(await mongoAdapter(fresh.db)('Session').findByUid(anything)).to.equal(undefined)
  })
})
