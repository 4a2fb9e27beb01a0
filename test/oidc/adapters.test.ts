import { randomBytes } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { expect } from 'chai'
import type { AdapterPayload } from 'oidc-provider'
import { itIsAnAdapter } from '../../src/contract/index.ts'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import { memoryAdapter, mongoAdapter, type AccountAdapter } from '../../src/index.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { describeWithMongo, freshDatabase, type FreshDatabase } from '../support/mongod.ts'
import {
  isActive,
  offlineTokens,
  outcomeOf,
  redeem,
  redeemed,
  refresh,
} from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime, resetTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { accountOf, addVerified } from '../support/person.ts'

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
    const user = await addVerified(h)
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
    const [user, agent] = [await addVerified(h), createUserAgent()]
    const { refresh_token, access_token } = await offlineTokens(h, agent, user)
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
