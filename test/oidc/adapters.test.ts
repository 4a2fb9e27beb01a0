import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { Document } from 'mongodb'
import type { AdapterPayload } from 'oidc-provider'
import { itIsAnAdapter } from '../../src/contract/suites/index.ts'
import { type AccountAdapter, postgresStore } from '../../src/index.ts'
import { flowsStore } from '../../src/store/index.ts'
import { PAR_ONLY, pushedLogin } from '../support/clients.ts'
import { expectPage, createUserAgent } from '../support/user-agent.ts'
import {
  CONFIDENTIAL,
  type Harness,
  onEachStore,
  startHarness,
  suiteHarness,
} from '../support/harness.ts'
import { createGate } from '../support/gate.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import { describeOnPostgresql } from '../support/postgresql.ts'
import * as ask from '../support/oauth-requests.ts'
import { allIn } from '../support/records.ts'
import { movableClock, moveTime, resetTime } from '../support/time.ts'
import { adapterOn, keptInMemory, keptOn } from '../support/kept.ts'

type Factory = (model: string) => AccountAdapter

const HOUR = 3600

/** What `flows.adapter` does with an adapter that can do it, and what only time shows. */
function itEndsRecords(create: () => Promise<Factory>): void {
  let of: Factory

  beforeEach(async () => {
    of = await create()
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

  it('forgets a record after its time, and keeps one that has none', async () => {
    await of('Session').upsert('short', { uid: 'short' }, 1)
    await of('Session').upsert('long', { uid: 'long' }, HOUR)
    await of('Client').upsert('for ever', { client_id: 'for ever' }, undefined)
    await moveTime(1_001)
    expect(await of('Session').find('short')).to.equal(undefined)
    expect(await of('Session').findByUid('short')).to.equal(undefined)
    expect(await of('Session').find('long')).to.deep.equal({ uid: 'long' })
    expect(await of('Client').find('for ever')).to.deep.equal({ client_id: 'for ever' })
  })
}

onEachStore('Two windows of one browser', (technology) => {
  const gate = createGate()
  const h = suiteHarness({
    technology,
    provider: {
      async findAccount(_ctx, sub) {
        await gate.pass('find account')
        return { accountId: sub, claims: () => ({ sub }) }
      },
    },
  })

  it('may save the same session at once, while one of them gives it a new id: both are answered', async () => {
    const user = await h.addVerified()
    await user.signsIn()
    const [{ url }, other] = [await h.party.begin({ prompt: 'login' }), await h.party.begin()]
    const login = await h.login(user.agent, url, user.username)
    const request = () => user.agent.get(other.url)
    const inFlight = await gate.during('find account', request, async () =>
      expect(ask.outcomeOf(await h.follow(user.agent, login))).to.equal('code'),
    )
    expect(ask.outcomeOf(inFlight)).to.equal('code')
    expect(await user.account()).to.equal(user.id)
  })
})

onEachStore('What a client may use once', (technology) => {
  const h = suiteHarness({ technology })

  /** By the process that began, and by another one on the same database. */
  async function inTwoProcesses<T>(use: (process: Harness) => Promise<T>): Promise<T[]> {
    const { database } = h
    const other = database && (await startHarness({ technology, database }))
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
      await user.in(agent).signsIn()
      const begun = await h.party.begin()
      return [begun, (await h.follow(agent, await agent.get(begun.url))).location] as const
    }
    const [request, location] = await codeInNewBrowser()
    const answers = await inTwoProcesses((process) => ask.redeemed(process, request, location))
    const tokens = answers.flatMap(({ access_token }) => access_token ?? [])
    expect(tokens).to.have.length.at.most(1)
    for (const token of tokens) expect(await ask.isActive(h, token)).to.equal(false)
    expect(await ask.redeem(h, ...(await codeInNewBrowser()))).to.equal('tokens')
  })
})

describe('flows.adapter() in memory', () => {
  const inMemory = async () =>
    adapterOn(keptInMemory(movableClock), [randomBytes(32)], movableClock).of
  itIsAnAdapter('flows.adapter() in memory', async () => ({
    adapterOf: await inMemory(),
    close: async () => {},
  }))
  itEndsRecords(inMemory)
})

describeOnPostgresql('flows.adapter() on PostgreSQL', (database, empty) => {
  const adapterOf = async () => {
    const store = flowsStore(postgresStore(database()), movableClock)
    await store.start()
    return adapterOn(store, [randomBytes(32)], movableClock).of
  }
  itIsAnAdapter('flows.adapter() on PostgreSQL', async () => ({
    adapterOf: await adapterOf(),
    close: empty,
  }))
  describe('with its own time', () => {
    before(resetTime)
    afterEach(empty)
    itEndsRecords(adapterOf)
  })
})

describeWithMongo('flows.adapter() on MongoDB', () => {
  let fresh: FreshDatabase
  const secrets = [randomBytes(32)]
  const adapterOf = (model: string) => adapterOn(keptOn(fresh.db), secrets, movableClock).of(model)

  before(async () => {
    resetTime()
    fresh = await freshDatabase()
    await keptOn(fresh.db).start()
  })

  after(() => fresh.drop())

  async function emptied() {
    await fresh.db.collection('oidc_records').deleteMany({})
    return adapterOf
  }

  itIsAnAdapter('flows.adapter() on MongoDB', async () => ({
    adapterOf: await emptied(),
    close: async () => {},
  }))
  itEndsRecords(emptied)

  it('finds all that an account or a grant has, however much that is', async () => {
    const of = await emptied()
    const ids = Array.from({ length: 2_100 }, (_, number) => `${number}`)
    const ofAnn = { accountId: 'ann', grantId: 'g' }
    await Promise.all(ids.map((id) => of('AccessToken').upsert(id, ofAnn, HOUR)))
    await of('AccessToken').upsert('other', { accountId: 'bob', grantId: 'other' }, HOUR)
    await of('RefreshToken').upsert('other', ofAnn, HOUR)
    expect(await of('AccessToken').destroyByAccountId('ann', () => false)).to.equal(0)
    await of('AccessToken').revokeByGrantId('g')
    expect(await fresh.db.collection('oidc_records').countDocuments()).to.equal(2)
    expect(await of('RefreshToken').destroyByAccountId('ann', () => true)).to.equal(1)
    expect(await of('AccessToken').find('other')).to.include({ accountId: 'bob' })
  })
})

describeWithMongo('Who reads the whole database', () => {
  const h = suiteHarness({ technology: 'mongodb', clients: [...ask.CLIENTS, PAR_ONLY] })

  it('reads nothing that opens a session, a request, a code or a token, and nobody is let in with what it reads (TOK-24)', async () => {
    const { agent, tokens } = await ask.signedIn(h)
    const waiting = createUserAgent()
    const { location = '' } = await agent.get((await h.party.begin()).url)
    const device = await ask.beginDevice(h)
    const { location: login = '' } = await waiting.get((await h.party.begin()).url)
    const blocked = await h.blockedLogin()
    const [held, holder] = [await ask.beginDevice(h), await h.addUnverified()]
    await ask.confirmDevice(h, holder.agent, held)
    expectPage(await ask.postLogin(h, holder.agent, holder), 200, 'verify-email', 'blocked')
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
    const dump = await allIn(h.database ?? {})
    for (const [what, secret] of Object.entries(secrets)) {
      expect(secret, what).to.be.a('string').with.length.at.least(8)
      for (const [name, records] of dump) {
        expect(JSON.stringify(records), `${what} in ${name}`).to.not.include(secret)
      }
    }

    const whole = [...dump.values()].flat().map(({ _id }) => _id)
    const ids = whole.flatMap((id) => [id, id.replace(/^\w+:/, '')])
    expect(ids).to.have.length.above(10)
    for (const id of ids) {
      expect(await ask.isActive(h, id), id).to.equal(false)
      expect(await ask.userinfo(h, id), id).to.equal(401)
      expect(await ask.refresh(h, id), id).to.equal('invalid_grant')
    }
    const session = dump.get('oidc_records')?.find(({ model }) => model === 'Session')
    const thief = { cookie: `_session=${String(session?._id).replace('Session:', '')}` }
    const { url } = await h.party.begin({ prompt: 'none' })
    expect(ask.outcomeOf(await createUserAgent().get(url, thief))).to.equal('login_required')

    expect(await ask.isActive(h, access_token)).to.equal(true)
    expect(await ask.refresh(h, refresh_token)).to.equal('tokens')
    expect(await ask.pollDevice(h, device)).to.equal('authorization_pending')
    await blocked.stillGetsIn()
  })
})

describeWithMongo('flows.adapter() on MongoDB, sealing', () => {
  const [first, second] = [randomBytes(32), randomBytes(32)]
  let fresh: FreshDatabase

  before(async () => {
    fresh = await freshDatabase()
    await keptOn(fresh.db).start()
  })
  after(() => fresh.drop())
  beforeEach(() => fresh.db.collection('oidc_records').deleteMany({}))

  const adapterWith = (...secrets: Buffer[]) => adapterOn(keptOn(fresh.db), secrets)
  const adapterOf = (model: string, ...secrets: Buffer[]) =>
    adapterWith(...(secrets.length > 0 ? secrets : [first])).of(model)
  const stored = () => fresh.db.collection<{ _id: string }>('oidc_records').find().toArray()

  it('shows of a record whose it is, of which grant, and whether it was consumed', async () => {
    const payload = { accountId: 'ann', grantId: 'g', scope: 'openid', iat: 5 }
    await adapterOf('AuthorizationCode').upsert('the code', payload, HOUR)
    await adapterOf('AuthorizationCode').consume('the code')
    const [{ _id = '', _rev, _was, sealed, consumed_at, expires_at, ...shown } = {}] =
      (await stored()) as Document[]
    expect(_id).to.match(/^AuthorizationCode:[0-9a-f]{64}$/)
    expect([consumed_at, expires_at]).to.satisfy((both: unknown[]) =>
      both.every((at) => at instanceof Date),
    )
    expect(sealed).to.match(/^ey/)
    const named = { model: 'AuthorizationCode', account_id: 'ann', grant_id: 'g' }
    expect(shown).to.deep.equal({ ...named, uid: null, user_code: null })
  })

  it('finds nothing under a hash of a uid that was read in the database, nor where a record was exchanged for another one', async () => {
    await adapterOf('Session').upsert('1', { uid: 'u1', accountId: 'ann' }, HOUR)
    await adapterOf('Session').upsert('2', { uid: 'u2', accountId: 'eve' }, HOUR)
    const sessions = fresh.db.collection<{ _id: string; sealed: string; uid: string }>(
      'oidc_records',
    )
    const records = await sessions.find().toArray()
    for (const { uid } of records)
      expect(await adapterOf('Session').findByUid(uid)).to.equal(undefined)
    const [one, other] = records
    await sessions.updateOne({ _id: one?._id ?? '' }, { $set: { sealed: other?.sealed ?? '' } })
    expect(await sessions.countDocuments()).to.equal(2)
    const found = await Promise.all(['1', '2'].map((id) => adapterOf('Session').find(id)))
    expect(found.filter((payload) => payload !== undefined)).to.have.length(1)
  })

  it('opens what an earlier key of the ring sealed, and forgets what no key opens', async () => {
    await adapterOf('Session').upsert('1', { accountId: 'ann' }, HOUR)
    expect(await adapterOf('Session', second, first).find('1')).to.deep.equal({ accountId: 'ann' })
    expect(await adapterOf('Session', second).find('1')).to.equal(undefined)
  })

  it('seals clients as well; a start seals what never expires with the first key', async () => {
    await adapterOf('Client').upsert('sealed', CONFIDENTIAL)
    await adapterOf('Client').upsert('public', { client_id: 'public' })
    await adapterOf('RegistrationAccessToken').upsert('1', { clientId: 'sealed' })
    await adapterWith(second, first).start()
    const records = await stored()
    for (const secret of [CONFIDENTIAL.client_secret, CONFIDENTIAL.client_id, 'public'])
      expect(JSON.stringify(records)).to.not.include(secret)
    const clients = adapterOf('Client', second)
    expect(await clients.find('sealed')).to.deep.equal(CONFIDENTIAL)
    expect(await clients.find('public')).to.deep.equal({ client_id: 'public' })
    const tokens = adapterOf('RegistrationAccessToken', second)
    expect(await tokens.find('1')).to.deep.equal({ clientId: 'sealed' })
  })
})
