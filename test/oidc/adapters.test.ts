import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { expect } from 'chai'
import type { AdapterPayload } from 'oidc-provider'
import { itIsAnAdapter } from '../../src/contract/index.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import { type AccountAdapter, memoryAdapter, mongoAdapter } from '../../src/index.ts'
import { PAR_ONLY, pushedLogin } from '../support/clients.ts'
import { eventually } from '../support/eventually.ts'
import { expectPage, createUserAgent } from '../support/user-agent.ts'
import {
  CONFIDENTIAL,
  type Harness,
  onBothStores,
  startHarness,
  suiteHarness,
} from '../support/harness.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import {
  beginDevice,
  CLIENTS,
  confirmDevice,
  isActive,
  outcomeOf,
  pollDevice,
  postLogin,
  redeem,
  redeemed,
  refresh,
  signedIn,
  userinfo,
} from '../support/oauth-requests.ts'
import { moveTime, resetTime } from '../support/time.ts'

type Factory = (model: string) => AccountAdapter

/** A MongoDB that was given by its address clears out expired documents once a minute only. */
const TTL_LIMIT = process.env['MONGODB_URI'] ? 90_000 : 15_000

const HOUR = 3600

/** What `flows.adapter` does with an adapter that can do it, and what only time shows. */
function itEndsRecords(create: () => Promise<Factory>, tierOfTimes = ''): void {
  let of: Factory

  beforeEach(async () => {
    of = await create()
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
  const gate = new EventEmitter()
  let isHeldUp = false
  const h = suiteHarness({
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

  it('may save the same session at once, while one of them gives it a new id: both are answered', async () => {
    const user = await h.addVerified()
    await user.signsIn()
    const { url } = await h.party.begin({ prompt: 'login' })
    const login = await h.login(user.agent, url, user.username)
    isHeldUp = true
    const arrived = once(gate, 'arrived')
    const inFlight = user.agent.get((await h.party.begin()).url)
    await arrived
    expect(outcomeOf(await h.follow(user.agent, login))).to.equal('code')
    gate.emit('opened')
    expect(outcomeOf(await inFlight)).to.equal('code')
    expect(await user.account()).to.equal(user.id)
  })
})

onBothStores('What a client may use once', (technology) => {
  const h = suiteHarness({ technology, provider: { rotateRefreshToken: true } })

  /** By the process that began, and by another one on the same database. */
  async function inTwoProcesses<T>(use: (process: Harness) => Promise<T>): Promise<T[]> {
    const { db } = h
    const other = db && (await startHarness({ technology, database: { db, drop: async () => {} } }))
    try {
      const processes = Array.from({ length: 12 }, (_, i) => (i % 2 === 1 && other) || h)
      return await Promise.all(processes.map(use))
    } finally {
      await other?.close()
    }
  }

  it('is a code: of 12 that redeem it at once none keeps a token that lives (RACE-12)', async () => {
    const user = await h.addVerified()
    const codeInNewBrowser = async () => {
      const agent = createUserAgent()
      await h.signIn(agent, user.username)
      const begun = await h.party.begin()
      return [begun, (await h.follow(agent, await agent.get(begun.url))).location] as const
    }
    const [request, location] = await codeInNewBrowser()
    const answers = await inTwoProcesses((process) => redeemed(process, request, location))
    const tokens = answers.flatMap(({ access_token }) => access_token ?? [])
    expect(tokens).to.have.length.at.most(1)
    for (const token of tokens) expect(await isActive(h, token)).to.equal(false)
    expect(await redeem(h, ...(await codeInNewBrowser()))).to.equal('tokens')
  })

  it('is a refresh token that rotates: of 12 who use it at once one gets tokens, and the grant ends (RACE-12)', async () => {
    const { tokens } = await signedIn(h)
    const { refresh_token, access_token } = tokens
    expect(await isActive(h, access_token)).to.equal(true)
    const outcomes = await inTwoProcesses((process) => refresh(process, refresh_token))
    expect(outcomes.filter((outcome) => outcome === 'tokens')).to.have.length.at.most(1)
    expect(outcomes).to.include('invalid_grant')
    expect(await isActive(h, access_token)).to.equal(false)
    expect(await refresh(h, refresh_token)).to.equal('invalid_grant')
  })
})

describe('memoryAdapter()', () => {
  itIsAnAdapter('memoryAdapter()', async () => ({
    adapterOf: memoryAdapter(),
    close: async () => {},
  }))
  itEndsRecords(async () => memoryAdapter())

  it('shares nothing with another one', async () => {
    await memoryAdapter()('Session').upsert('1', { uid: '1' }, HOUR)
    expect(await memoryAdapter()('Session').find('1')).to.equal(undefined)
  })
})

describeWithMongo('mongoAdapter()', () => {
  const box = createSecretBox(createKeyRing([randomBytes(32)]))
  let fresh: FreshDatabase
  const adapterOf = (model: string) => mongoAdapter(fresh.db)(model, box)

  before(async () => {
    resetTime()
    fresh = await freshDatabase()
    await mongoAdapter(fresh.db).start(box)
  })

  after(() => fresh.drop())

  async function emptied() {
    for (const collection of await fresh.db.collections()) await collection.deleteMany({})
    return adapterOf
  }

  itIsAnAdapter('mongoAdapter()', async () => ({
    adapterOf: await emptied(),
    close: async () => {},
  }))
  itEndsRecords(emptied, ' [full]')

  it('keeps one collection a model in snake_case, whose documents expire', async () => {
    const before = Date.now()
    await (await emptied())('PushedAuthorizationRequest').upsert('1', { request: 'r' }, 60)
    const stored = await fresh.db.collection('pushed_authorization_request').find().toArray()
    const { expiresAt } = stored[0] ?? { expiresAt: undefined }
    expect(expiresAt).to.be.instanceOf(Date)
    expect((expiresAt as Date).getTime()).to.be.at.least(before + 60_000)
  })

  it('has indexes by account, by grant and by time, and can be started again', async () => {
    await mongoAdapter(fresh.db).start(box)
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
    await adapterOf('Session').upsert('1', { uid: '1' }, HOUR)
    const anything = { $ne: null } as never
    expect(await adapterOf('Session').find(anything)).to.equal(undefined)
    expect(await adapterOf('Session').findByUid(anything)).to.equal(undefined)
  })
})

describeWithMongo('Who reads the whole database', () => {
  const h = suiteHarness({ technology: 'mongodb', clients: [...CLIENTS, PAR_ONLY] })
  const everything = async () => {
    const collections = (await h.db?.collections()) ?? []
    return Promise.all(
      collections.map(async (collection) => ({
        name: collection.collectionName,
        records: await collection.find().toArray(),
      })),
    )
  }

  it('reads nothing that opens a session, a request, a code or a token, and nobody is let in with what it reads (TOK-24)', async () => {
    const { agent, tokens } = await signedIn(h)
    const waiting = createUserAgent()
    const { location = '' } = await agent.get((await h.party.begin()).url)
    const device = await beginDevice(h)
    const { location: login = '' } = await waiting.get((await h.party.begin()).url)
    const blocked = await h.blockedLogin()
    const [held, holder] = [await beginDevice(h), await h.addUnverified()]
    await confirmDevice(h, holder.agent, held)
    expectPage(await postLogin(h, holder.agent, holder), 200, 'verify-email', 'blocked')
    const { id_token: hint = '', access_token, refresh_token = '' } = tokens
    await h.blockedLogin({ extra: { id_token_hint: hint } })
    const { searchParams: pushed } = (await pushedLogin(h)).url
    const secrets = {
      session: h.sessionId(agent),
      code: new URL(location).searchParams.get('code'),
      access_token,
      refresh_token,
      device_code: device.device_code,
      'device_code of a login that waits': held.device_code,
      id_token_hint: hint,
      user_code: device.verification_uri_complete.split('user_code=')[1]?.replaceAll('-', ''),
      interaction: new URL(login).searchParams.get('interaction'),
      'interaction of a login that waits': blocked.interaction,
      'request_uri of a login that waits': pushed.get('request_uri')?.replace(/^.*:/, ''),
    }
    const dump = await everything()
    for (const [what, secret] of Object.entries(secrets)) {
      expect(secret, what).to.be.a('string').with.length.at.least(8)
      for (const { name, records } of dump) {
        expect(JSON.stringify(records), `${what} in ${name}`).to.not.include(secret)
      }
    }

    const ids = dump.flatMap(({ records }) => records.map(({ _id }) => String(_id)))
    expect(ids).to.have.length.above(10)
    for (const id of ids) {
      expect(await isActive(h, id), id).to.equal(false)
      expect(await userinfo(h, id), id).to.equal(401)
      expect(await refresh(h, id), id).to.equal('invalid_grant')
    }
    const session = dump.find(({ name }) => name === 'session')?.records[0]
    const thief = { cookie: `_session=${String(session?._id)}` }
    const { url } = await h.party.begin({ prompt: 'none' })
    expect(outcomeOf(await createUserAgent().get(url, thief))).to.equal('login_required')

    expect(await isActive(h, access_token)).to.equal(true)
    expect(await refresh(h, refresh_token)).to.equal('tokens')
    expect(await pollDevice(h, device)).to.equal('authorization_pending')
    await blocked.stillGetsIn()
  })
})

describeWithMongo('mongoAdapter(), sealing', () => {
  const [first, second] = [randomBytes(32), randomBytes(32)]
  const box = createSecretBox(createKeyRing([first]))
  let fresh: FreshDatabase

  before(async () => {
    fresh = await freshDatabase()
    await mongoAdapter(fresh.db).start(box)
  })
  after(() => fresh.drop())
  beforeEach(() => emptied(undefined)())

  const adapterOf = (model: string, keys = box) => mongoAdapter(fresh.db)(model, keys)
  const inClear = (model: string) => mongoAdapter(fresh.db, { records: 'clear' })(model, box)
  const stored = (name: string) => fresh.db.collection<{ _id: string }>(name).find().toArray()

  it('stores in clear without flows.adapter(…), says so, and opens nothing that is sealed', async () => {
    const warned = once(process, 'warning')
    const alone = mongoAdapter(fresh.db)('Session')
    expect(String((await warned)[0]))
      .to.include('unencrypted')
      .and.include('flows.adapter')
    await alone.upsert('1', { uid: 'u1' }, HOUR)
    expect(await stored('session')).to.have.nested.property('[0]._id', '1')
    expect(await adapterOf('Session').find('1')).to.deep.equal({ uid: 'u1' })
    await adapterOf('Session').upsert('2', { uid: 'u2' }, HOUR)
    expect(await alone.find('2')).to.equal(undefined)
  })

  it('shows of a record whose it is, of which grant, and whether it was consumed', async () => {
    const payload = { accountId: 'ann', grantId: 'g', scope: 'openid', iat: 5 }
    await adapterOf('AuthorizationCode').upsert('the code', payload, HOUR)
    await adapterOf('AuthorizationCode').consume('the code')
    const [record] = await stored('authorization_code')
    expect(record).to.have.all.keys('_id', 'payload', 'sealed', 'expiresAt')
    expect(record?._id).to.match(/^[0-9a-f]{64}$/)
    expect(Reflect.get(record ?? {}, 'payload')).to.have.all.keys(
      'accountId',
      'grantId',
      'consumed',
    )
  })

  /** Of two processes, one of which makes records in clear, each call is made by the other one. */
  function inTurns(model: string): AccountAdapter {
    const both = [adapterOf(model), inClear(model)] as const
    return new Proxy(both[0], {
      get(_, name) {
        calls += 1
        return Reflect.get(both[calls % 2 === 0 ? 0 : 1], name)
      },
    })
  }
  let calls = 0

  const close = async () => {}
  const emptied =
    <T>(of: T) =>
    async () => {
      for (const collection of await fresh.db.collections()) await collection.deleteMany({})
      return of
    }
  itIsAnAdapter('one that makes records in clear', async () => ({
    adapterOf: await emptied(inClear)(),
    close,
  }))
  itIsAnAdapter('two processes, one of which makes records in clear,', async () => ({
    adapterOf: await emptied(inTurns)(),
    close,
  }))

  for (const [wrote, writer, reader] of [
    ['in clear', inClear, adapterOf],
    ['sealed', adapterOf, inClear],
  ] as const) {
    it(`keeps what was made ${wrote} in that form, in one place, whoever changes it`, async () => {
      const session = { jti: '1', uid: 'u1', accountId: 'ann', loginTs: 1 }
      await writer('Session').upsert('1', session, HOUR)
      await reader('Session').upsert('1', { ...session, loginTs: 2 }, HOUR)
      for (const of of [writer, reader]) {
        expect(await of('Session').find('1')).to.include({ loginTs: 2 })
        expect(await of('Session').findByUid('u1')).to.include({ loginTs: 2 })
      }
      const [record, ...others] = await stored('session')
      expect([others, record && 'sealed' in record]).to.deep.equal([[], wrote === 'sealed'])
      expect(record).to.have.property('expiresAt').that.is.instanceOf(Date)
      const isEnded = ({ loginTs }: AdapterPayload) => loginTs === 2
      expect(await reader('Session').destroyByAccountId('ann', isEnded)).to.equal(1)
    })

    it(`lets one of 12 processes, of either kind, use a code once that was made ${wrote} (RACE-12)`, async () => {
      for (let round = 0; round < 5; round += 1) {
        const id = `code ${round}`
        await writer('AuthorizationCode').upsert(id, { grantId: 'g' }, HOUR)
        const uses = Array.from({ length: 12 }, async (_, at) => {
          const codes = at % 2 === 0 ? writer('AuthorizationCode') : reader('AuthorizationCode')
          if ((await codes.find(id))?.consumed !== undefined) throw new Error('used')
          await codes.consume(id)
        })
        const outcomes = await Promise.allSettled(uses)
        expect(outcomes.filter(({ status }) => status === 'fulfilled')).to.have.length(1)
      }
    })

    it(`lets a device be answered once whose code was made ${wrote}`, async () => {
      const code = { jti: '1', userCode: 'ABCD', grantId: 'g' }
      await writer('DeviceCode').upsert('1', code, HOUR)
      await reader('DeviceCode').upsert('1', { ...code, accountId: 'ann' }, HOUR)
      for (const of of [writer, reader]) {
        expect(await of('DeviceCode').findByUserCode('ABCD')).to.include({ accountId: 'ann' })
      }
    })
  }

  it('lets one of two processes of either kind save the id of one JWT (RACE-12)', async () => {
    for (let round = 0; round < 10; round += 1) {
      const saved = await Promise.allSettled(
        [adapterOf, inClear].map((of) => of('ReplayDetection').upsert(`${round}`, {}, HOUR)),
      )
      expect(saved.filter(({ status }) => status === 'fulfilled')).to.have.length(1)
    }
  })

  it('finds nothing under a hash that was read in the database, nor where a record was exchanged for another one', async () => {
    await adapterOf('Session').upsert('1', { uid: 'u1', accountId: 'ann' }, HOUR)
    await adapterOf('Session').upsert('2', { uid: 'u2', accountId: 'eve' }, HOUR)
    const sessions = fresh.db.collection<{ _id: string; sealed: string; payload: AdapterPayload }>(
      'session',
    )
    const records = await sessions.find().toArray()
    for (const { _id, payload } of records) {
      expect(await adapterOf('Session').find(_id)).to.equal(undefined)
      expect(await adapterOf('Session').findByUid(payload.uid ?? '')).to.equal(undefined)
      await adapterOf('Session').destroy(_id)
    }
    const [one, other] = records
    await sessions.updateOne({ _id: one?._id ?? '' }, { $set: { sealed: other?.sealed ?? '' } })
    expect(await sessions.countDocuments()).to.equal(2)
    const found = await Promise.all(['1', '2'].map((id) => adapterOf('Session').find(id)))
    expect(found.filter((payload) => payload !== undefined)).to.have.length(1)
  })

  it('opens what an earlier key of the ring sealed, and forgets what no key opens', async () => {
    await adapterOf('Session').upsert('1', { accountId: 'ann' }, HOUR)
    const rotated = createSecretBox(createKeyRing([second, first]))
    const other = createSecretBox(createKeyRing([second]))
    expect(await adapterOf('Session', rotated).find('1')).to.deep.equal({ accountId: 'ann' })
    expect(await adapterOf('Session', other).find('1')).to.equal(undefined)
  })

  it('seals the secrets of clients alone; a start seals those in clear, and what never expires with the first key', async () => {
    const { client_secret, ...rest } = CONFIDENTIAL
    await inClear('Client').upsert('clear', CONFIDENTIAL)
    await adapterOf('Client').upsert('sealed', CONFIDENTIAL)
    await adapterOf('Client').upsert('public', { client_id: 'public' })
    await adapterOf('RegistrationAccessToken').upsert('1', { clientId: 'sealed' })
    const rotated = createSecretBox(createKeyRing([second, first]))
    await mongoAdapter(fresh.db).start(rotated)
    const clients = await stored('client')
    expect(JSON.stringify(clients)).to.not.include(client_secret)
    for (const { _id, ...record } of clients) {
      if (_id !== 'public') expect(record).to.deep.include({ payload: rest })
    }
    const other = adapterOf('Client', createSecretBox(createKeyRing([second])))
    for (const id of ['clear', 'sealed']) expect(await other.find(id)).to.deep.equal(CONFIDENTIAL)
    expect(await other.find('public')).to.deep.equal({ client_id: 'public' })
    const tokens = adapterOf('RegistrationAccessToken', createSecretBox(createKeyRing([second])))
    expect(await tokens.find('1')).to.deep.equal({ clientId: 'sealed' })
  })
})
