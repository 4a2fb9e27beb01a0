import { expect } from 'chai'
import { createRemoteJWKSet, jwtVerify } from 'jose'
import Koa from 'koa'
import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'
import { memoryUsers } from '../../src/index.ts'
import { createEndableSessions } from '../../src/oidc/endable-sessions.ts'
import { secondAfter } from '../../src/store/cutoffs.ts'
import {
  CONFIDENTIAL,
  type Harness,
  type HarnessOptions,
  onEachStore,
  PASSWORD,
  suiteHarness,
} from '../support/harness.ts'
import { commandRows } from '../support/command-rows.ts'
import { eventually } from '../support/eventually.ts'
import { describeWithMongo, freshDatabase } from '../support/mongod.ts'
import * as ask from '../support/oauth-requests.ts'
import type { Person } from '../support/person.ts'
import { movableClock } from '../support/time.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import { adapterOn, keptInMemory } from '../support/kept.ts'
import { systemClock } from '../../src/clock.ts'

const NEW = 'a new password, longer'

/** Where an authorization request leads in this browser. */
async function leadsTo(h: Harness, agent: UserAgent, asked: Record<string, string> = {}) {
  const { url } = await h.party.begin(asked)
  return ask.outcomeOf(await h.follow(agent, await agent.get(url)))
}

/** Everything that an account can have under way when its password is reset. */
async function prepare(h: Harness, user: Person) {
  const [session, held, parked] = [createUserAgent(), createUserAgent(), createUserAgent()]
  const [parkedInSession, open] = [createUserAgent(), createUserAgent()]
  const tokens = await ask.offlineTokens(h, session, user)
  const bound = await h.party.begin()
  const boundAnswer = await session.get(bound.url)
  const code = await h.party.begin()
  const codeAnswer = await session.get(code.url)
  const device = await ask.beginDevice(h)
  await ask.confirmDevice(h, session, device)
  const devices = { device, pendingDevice: await ask.beginDevice(h) }

  const heldAnswer = await h.login(held, (await h.party.begin()).url, user.username)
  expect(heldAnswer.status).to.equal(303)
  expect(heldAnswer.location).to.include('/auth/')
  await ask.parkAtConsent(h, parked, user)
  await user.in(parkedInSession).signsIn()
  await ask.parkAtConsent(h, parkedInSession, user)
  await h.follow(open, await open.get((await h.party.begin()).url))
  const boundToken = (await h.party.exchange(bound, boundAnswer.location ?? '')).access_token
  const browsers = { session, held, parked, parkedInSession, open }
  return { user, ...browsers, ...devices, heldAnswer, tokens, boundToken, code, codeAnswer }
}

type Prepared = Awaited<ReturnType<typeof prepare>>

describe('What a password reset ends (3.3, effects 3 and 4)', () => itEndsEverything({}))

/** A class that keeps what it needs in `this`, as hosts write them. */
const asClass = (factory: AdapterFactory) =>
  class HostAdapter implements Adapter {
    readonly inner: Adapter

    constructor(model: string) {
      this.inner = factory(model)
    }
    upsert(id: string, payload: AdapterPayload, expiresIn: number) {
      return this.inner.upsert(id, payload, expiresIn)
    }
    find(id: string) {
      return this.inner.find(id)
    }
    findByUid(uid: string) {
      return this.inner.findByUid(uid)
    }
    findByUserCode(userCode: string) {
      return this.inner.findByUserCode(userCode)
    }
    consume(id: string) {
      return this.inner.consume(id)
    }
    destroy(id: string) {
      return this.inner.destroy(id)
    }
    revokeByGrantId(grantId: string) {
      return this.inner.revokeByGrantId(grantId)
    }
  }

/** They cannot find what an account has. */
const HOST_ADAPTERS = {
  'a class': asClass,
  'a factory that is no arrow function': (factory: AdapterFactory): AdapterFactory =>
    function adapter(model) {
      return ask.withoutAccounts(factory)(model)
    },
}

for (const [kind, adapter] of Object.entries(HOST_ADAPTERS))
  describe(`What a password reset ends, where flows.adapter(…) wraps ${kind}`, () =>
    itEndsEverything({ adapter }))

describe('flows.endSessions(accountId) over an adapter that does not find accounts', () => {
  const h = suiteHarness({ adapter: ask.withoutAccounts })

  it('ends everything of the account and nothing of any other, and counts nothing', async () => {
    const [ann, bob] = [await ask.signedIn(h), await ask.signedIn(h)]
    const ended = await h.flows.endSessions(ann.id)
    expect(ended).to.deep.equal({ oauth: undefined, idp: undefined })
    await ask.expectEnded(h, ann)
    await ask.expectAlive(h, bob)
  })
})

function itEndsEverything(options: HarnessOptions): void {
  const h = suiteHarness({ ...options, clients: ask.CLIENTS })
  let ann: Prepared
  /** Does the same as Ann and keeps her password: what works for Bob is what ended for Ann. */
  let bob: Prepared
  let machine: string

  before(async () => {
    ann = await prepare(h, await h.addVerified())
    bob = await prepare(h, await h.addVerified())
    machine = await ask.machineToken(h)
    await ann.user.getsBackIn(NEW)
  })

  const silent = ({ session }: Prepared) => leadsTo(h, session, { prompt: 'none' })
  const asked = ({ session }: Prepared) => leadsTo(h, session)
  const userinfo = ({ tokens: { access_token }, boundToken }: Prepared) =>
    Promise.all([access_token, boundToken].map((token) => ask.userinfo(h, token)))
  const areActive = ({ tokens: { access_token, refresh_token } }: Prepared) =>
    Promise.all([access_token, refresh_token].map((token) => ask.isActive(h, token)))
  const refreshed = ({ tokens }: Prepared) => ask.refresh(h, tokens.refresh_token)
  const redeemed = ({ code, codeAnswer }: Prepared) => ask.redeem(h, code, codeAnswer.location)
  const polled = ({ device }: Prepared) => ask.pollDevice(h, device)
  const resumed = async (of: Prepared) => ask.outcomeOf(await h.follow(of.held, of.heldAnswer))
  const consented = (at: 'parked' | 'parkedInSession') => async (of: Prepared) =>
    ask.outcomeOf(await ask.consent(h, of[at]))

  type Row = [what: string, outcome: (of: Prepared) => Promise<unknown>, ann: unknown, bob: unknown]
  const rows: Row[] = [
    ['the session: prompt=none answers login_required (SES-11)', silent, 'login_required', 'code'],
    ['the session: the login page is shown otherwise', asked, 'login login', 'code'],
    ['access tokens, bound to the session or not: userinfo', userinfo, [401, 401], [200, 200]],
    ['tokens: introspection says not active (SES-01)', areActive, [false, false], [true, true]],
    ['refresh tokens: invalid_grant', refreshed, 'invalid_grant', 'tokens'],
    ['authorization codes: invalid_grant (SES-02)', redeemed, 'invalid_grant', 'tokens'],
    ['approved device codes: invalid_grant (SES-02)', polled, 'invalid_grant', 'tokens'],
    ['a login result that was held back: no code (SES-03)', resumed, '400', 'code'],
    ['a login that waits at the consent page: no code', consented('parked'), '400', 'code'],
    ['a session that waits at it: no code', consented('parkedInSession'), '400', 'code'],
  ]
  for (const [what, outcome, forAnn, forBob] of rows) {
    it(what, async () => {
      const outcomes = { ann: await outcome(ann), bob: await outcome(bob) }
      expect(outcomes).to.deep.equal({ ann: forAnn, bob: forBob })
    })
  }

  it('and none of these logins leaves a session, however often it is tried (SES-03)', async () => {
    const { held, heldAnswer, parked, parkedInSession } = ann
    expect(ask.outcomeOf(await h.follow(held, heldAnswer))).to.equal('400')
    for (const agent of [held, parked, parkedInSession]) {
      expect(await h.accountOf(agent)).to.equal(undefined)
    }
  })

  it('but not a login page that was open: the new password leads to a code', async () => {
    const old = await ask.postLogin(h, ann.open, ann.user)
    expect([old.status, old.mode]).to.deep.equal([401, 'wrong'])
    for (const [{ open, user }, password] of [
      [ann, NEW],
      [bob, PASSWORD],
    ] as const) {
      const back = await h.follow(open, await ask.postLogin(h, open, user, password))
      expect(ask.outcomeOf(back)).to.equal('code')
    }
    expect(await h.accountOf(ann.open)).to.equal(ann.user.id)
  })

  it('but not a device code that nobody approved yet: a fresh login approves it', async () => {
    expect(await ask.pollDevice(h, ann.pendingDevice)).to.equal('authorization_pending')
    const agent = createUserAgent()
    const login = await ask.confirmDevice(h, agent, ann.pendingDevice)
    expect([login.page, login.mode]).to.deep.equal(['login', 'login'])
    await h.follow(agent, await ask.postLogin(h, agent, ann.user, NEW))
    expect(await ask.pollDevice(h, ann.pendingDevice)).to.equal('tokens')
  })

  it('but not the token of a client that acts for nobody', async () => {
    expect(await ask.isActive(h, machine, CONFIDENTIAL)).to.equal(true)
  })
}

describe('What a password reset cannot end', () => {
  const api = 'https://api.example'
  const h = suiteHarness({
    provider: {
      features: {
        devInteractions: { enabled: false },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => api,
          useGrantedResource: () => true,
          getResourceServerInfo: () => ({ scope: 'read', accessTokenFormat: 'jwt' }),
        },
      },
      async loadExistingGrant({ oidc: { provider, session } }) {
        if (!session?.accountId) return undefined
        const grant = new provider.Grant({ accountId: session.accountId, clientId: 'app' })
        grant.addOIDCScope('openid')
        grant.addResourceScope(api, 'read')
        await grant.save()
        return grant
      },
    },
  })

  it('is an access token in JWT form, which stays valid until it expires: nobody asks us about it (SES-12)', async () => {
    const user = await h.addVerified()
    const back = await user.signsIn(PASSWORD, { scope: 'openid read' })
    const { access_token } = await h.party.exchange(user.request, back.location ?? '')
    await user.getsBackIn(NEW)
    const keys = createRemoteJWKSet(new URL(`${h.oauthUrl}/jwks`))
    const { payload } = await jwtVerify(access_token, keys, { issuer: h.oauthUrl, audience: api })
    expect(payload.sub).to.equal(user.id)
    expect(await user.account()).to.equal(undefined)
  })
})

onEachStore('flows.endSessions(accountId), and what it counts', (technology) => {
  const h = suiteHarness({ technology })

  it('ends everything of the account and nothing of any other, tells how much that was, and audits it', async () => {
    const [ann, bob] = [await ask.signedIn(h), await ask.signedIn(h)]
    const held = createUserAgent()
    const heldAnswer = await h.login(held, (await h.party.begin()).url, ann.username)
    // The grant, the used code, the access token and the refresh token; the session and the held login.
    const counts = { oauth: 4, idp: 2 }
    expect(await h.flows.endSessions(ann.id)).to.deep.equal(counts)
    await ask.expectEnded(h, ann)
    await ask.expectAlive(h, bob)
    expect(ask.outcomeOf(await h.follow(held, heldAnswer))).to.equal('400')
    const audited = h.events.filter(({ accountId }) => accountId === ann.id)
    expect(audited.map(({ type, details }) => ({ type, details }))).to.deep.equal([
      { type: 'sessions_ended', details: counts },
    ])
  })

  it('as the event of a reset does', async () => {
    const cid = await ask.signedIn(h)
    await cid.getsBackIn()
    const [reset] = cid.events('password_reset_completed')
    expect(reset?.details).to.deep.include({ oauth: 4, idp: 1 })
  })
})

describe('The cut-off of an account', () => {
  let reads: string[] = []
  const store = keptInMemory(systemClock, ({ cutoffs }) => ({
    cutoffs: {
      ...cutoffs,
      read(accountId) {
        reads.push(accountId)
        return cutoffs.read(accountId)
      },
    },
  }))
  const h = suiteHarness({ flows: { store: store.records } })

  async function readsOf(request: () => Promise<unknown>): Promise<string[]> {
    reads = []
    await request()
    return reads.toSorted()
  }

  it('is read once a request of the provider, however many records are found', async () => {
    const { id, agent, tokens } = await ask.signedIn(h)
    const request = await h.party.begin()
    const answer = await agent.get(request.url)
    const requests = {
      authorization: async () => agent.get((await h.party.begin({ prompt: 'none' })).url),
      code: () => h.party.exchange(request, answer.location ?? ''),
      userinfo: () => ask.userinfo(h, tokens.access_token),
      introspection: () => ask.isActive(h, tokens.access_token),
      refresh: () => ask.refresh(h, tokens.refresh_token),
    }
    for (const [name, work] of Object.entries(requests)) {
      expect(await readsOf(work), name).to.deep.equal([id])
    }
  })

  it('is read once when a login is resumed, and when a link is opened', async () => {
    const { id, agent, username } = await h.addVerified()
    const login = await h.login(agent, (await h.party.begin()).url, username)
    expect(await readsOf(() => agent.get(login.location ?? ''))).to.deep.equal([id])
    const blocked = await h.blockedLogin()
    expect(await readsOf(() => blocked.opensLink())).to.deep.equal([blocked.id])
  })

  it('is read once for each of two accounts that one request is about', async () => {
    const other = await ask.signedIn(h)
    const { link, id } = await h.blockedLogin()
    expect(await readsOf(() => other.agent.get(link))).to.deep.equal([id, other.id].toSorted())
  })

  it('is read anew by the next request', async () => {
    const user = await ask.signedIn(h)
    expect(await user.account()).to.equal(user.id)
    await store.cutoffs.end(user.id, { id: 'end', at: new Date() })
    expect(await user.account()).to.equal(undefined)
  })
})

describe('A request that began before a cut-off and ends after it', () => {
  const context = new Koa().createContext(
    ...([{ headers: {}, socket: {} }, {}] as unknown as Parameters<Koa['createContext']>),
  )

  for (const model of ['Grant', 'AccessToken']) {
    it(`makes no ${model} that lives, and a later request does`, async () => {
      const store = keptInMemory()
      const sessions = createEndableSessions({
        cutoffs: store.cutoffs,
        users: memoryUsers([]),
        clock: movableClock,
        log: () => {},
        own: adapterOn(store),
        recordLoggedOutClients: async () => {},
      })
      const adapter = sessions.adapter()(model)
      const save = (id: string) => {
        const payload = { accountId: 'ann', iat: Math.floor(Date.now() / 1000) }
        return adapter.upsert(id, payload, 60)
      }
      await sessions.perRequest(context, async () => {
        const at = new Date()
        await sessions.end('ann', { id: 'end', at })
        await secondAfter(movableClock, at)
        await save('in flight')
      })
      await sessions.perRequest(context, () => save('later'))
      expect(await adapter.find('in flight')).to.equal(undefined)
      expect(await adapter.find('later')).to.include({ accountId: 'ann' })
    })
  }
})

describeWithMongo('What a login and an end cost beside what the provider asks of MongoDB', () => {
  let commands: string[] = []
  let reset: ReturnType<typeof commandRows>
  const h = suiteHarness(async () => {
    const database = await freshDatabase('standalone', ({ commandName, command }) => {
      commands.push(`${commandName} ${String(command[commandName])}`)
    })
    // Neither the counts of tries nor what others do meanwhile.
    const others = / (rate_limits|mail_outbox|settings|key_rings|client_logouts|invitation_tokens)$/
    reset = commandRows(database.client, (name, { command }) => {
      const asked = JSON.stringify(command['filter'] ?? {})
      return !others.test(name) && !/lease_until|username/.test(asked)
    })
    return { database }
  })

  async function costOf<T>(
    work: () => Promise<T>,
    isCounted: (command: string) => boolean,
  ): Promise<[answer: T, commands: string[]]> {
    commands = []
    const answer = await work()
    return [answer, commands.filter(isCounted).toSorted()]
  }

  it('is for a login one read of the cut-offs a request, one of the account where it must be verified, and no write', async () => {
    const isOurs = (command: string) => / (users|session_cutoffs)$/.test(command)
    const { agent, username } = await h.addVerified()
    const request = await h.party.begin()
    const open = async () => h.follow(agent, await agent.get(request.url))
    const [page, opening] = await costOf(open, isOurs)
    expect(opening).to.deep.equal([])
    const form = { username, password: PASSWORD }
    const [posted, posting] = await costOf(() => agent.post(page.url, form), isOurs)
    // One read of the user is the host's, at each step from here.
    expect(posting).to.deep.equal(['find session_cutoffs', 'find users'])
    const [back, resuming] = await costOf(() => agent.get(posted.location ?? ''), isOurs)
    expect(resuming).to.deep.equal(['find session_cutoffs', 'find users', 'find users'])
    const exchange = () => h.party.exchange(request, back.location ?? '')
    const [, exchanging] = await costOf(exchange, isOurs)
    expect(exchanging).to.deep.equal(['find session_cutoffs', 'find users'])
  })

  it('is for each end two looks for all that the provider has of the account, one to delete, and nothing about clients where none is told', async () => {
    const user = await h.addVerified()
    await user.signsIn()
    await h.isIdle()
    const isCounted = (command: string) => !/ (mail_outbox|settings|key_rings)$/.test(command)
    const [, counted] = await costOf(() => h.flows.endSessions(user.id), isCounted)
    expect(counted).to.deep.equal([
      'delete oidc_records',
      'find email_verification_tokens',
      'find invitation_tokens',
      'find oidc_records',
      'find oidc_records',
      'find password_reset_tokens',
      'find pending_logins',
      'insert audit_events',
      'insert session_cutoffs',
    ])
  })

  it('is for a reset six commands in a row until its answer, and three after it', async () => {
    const user = await h.addVerified()
    await user.signsIn()
    const link = await user.forgets()
    await h.isIdle()
    reset.startOver()
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    await eventually('it is completed', () => reset.rows().length >= 9)
    expect(reset.rows()).to.deep.equal([
      ['find password_reset_tokens'],
      ['find users', 'update password_reset_tokens'],
      ['update users'],
      ['update password_reset_tokens'],
      ['find oidc_records', 'insert session_cutoffs'],
      ['insert audit_events'],
      ['find oidc_records'],
      ['delete oidc_records'],
      ['update password_reset_tokens'],
    ])
  })
})
