import type { IncomingMessage } from 'node:http'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import type { AdapterFactory, AdapterPayload } from 'oidc-provider'
import { type AccountAdapter, AccountFlowsError } from '../../src/index.ts'
import { secondAfter } from '../../src/store/cutoffs.ts'
import type { AccountFlowsStore } from '../../src/store/index.ts'
import { APP, SERVER } from '../support/clients.ts'
import { eventually } from '../support/eventually.ts'
import { createGate, type Gate } from '../support/gate.ts'
import { keptInMemory } from '../support/kept.ts'
import { expectPage, createUserAgent } from '../support/user-agent.ts'
import { CLIENT, type Harness, onEachStore, PASSWORD, suiteHarness } from '../support/harness.ts'
import * as ask from '../support/oauth-requests.ts'
import { expectMode, type Person, setsSession, wrongCode } from '../support/person.ts'
import { beforeFirst } from '../support/records.ts'
import { byAnotherClock, movableClock, moveTime } from '../support/time.ts'

const NEW = 'a new password, longer'

const ANOTHER_CLIENT = { ...CLIENT, client_id: 'another app' }

/** A request of a client that needs no PKCE: its link signs in by itself. */
const LOOSE = { ...SERVER, state: 'x' }

const hashOf = (password: string) => bcrypt.hash(password, 4)

/** Slow where a login result is saved or taken, and where a session is looked for. */
const slowBy =
  ({ pass }: Gate) =>
  (adapter: AdapterFactory): AdapterFactory =>
  (model) => {
    const inner = adapter(model)
    return {
      ...inner,
      async find(id) {
        await pass(`find ${model}`)
        return inner.find(id)
      },
      async upsert(id, payload, expiresIn) {
        const { login } = payload.result ?? {}
        if (login) await pass(`save login of ${login.accountId}`)
        return inner.upsert(id, payload, expiresIn)
      },
      async destroy(id) {
        await pass(`destroy ${model}`)
        return inner.destroy(id)
      },
    }
  }

describe('A request that is in flight while a password is reset (RACE-08, RACE-09)', () => {
  const gate = createGate()
  const h = suiteHarness({
    clients: [...ask.CLIENTS, ANOTHER_CLIENT],
    adapter: slowBy(gate),
    provider: {
      // So that nothing is dead merely because its session is.
      expiresWithSession: () => false,
      async findAccount(_ctx, sub) {
        await gate.pass(`find ${sub}`)
        return { accountId: sub, claims: () => ({ sub }) }
      },
    },
  })

  async function resetDuring<T>(place: string, user: Person, request: () => Promise<T>) {
    const link = await user.forgets()
    return gate.during(place, request, async () => {
      expect((await h.reset(link, NEW)).mode).to.equal('done')
    })
  }

  async function signedIn() {
    const user = await h.addVerified()
    expect(ask.outcomeOf(await user.signsIn())).to.equal('code')
    return user
  }

  /** A browser with a session in which nobody is signed in. */
  async function visitor() {
    const agent = createUserAgent()
    await agent.get(`${h.oauthUrl}/device`)
    expect(agent.cookiesFor(`${h.oauthUrl}/auth`)).to.include('_session=')
    return agent
  }

  it('saves its session again with a new grant, and both are dead, with the code (SES-04)', async () => {
    const another = ANOTHER_CLIENT.client_id
    const user = await signedIn()
    const request = await h.party.begin({ client_id: another })
    const answer = await resetDuring(`find ${user.id}`, user, () => user.agent.get(request.url))
    expect(setsSession(answer)).to.equal(true)
    expect(ask.outcomeOf(answer)).to.equal('code')
    expect(await ask.redeem(h, request, answer.location, another)).to.equal('invalid_grant')
    expect(await user.account()).to.equal(undefined)

    const undisturbed = await signedIn()
    const { location } = await undisturbed.agent.get(request.url)
    expect(await ask.redeem(h, request, location, another)).to.equal('tokens')
  })

  it('finishes a login with the old password, and neither its session nor its code is good', async () => {
    const user = await h.addVerified()
    const request = await h.party.begin()
    const login = await h.login(user.agent, request.url, user.username)
    const answer = await resetDuring(`find ${user.id}`, user, () => h.follow(user.agent, login))
    expect(setsSession(answer)).to.equal(true)
    expect(await ask.redeem(h, request, answer.location)).to.equal('invalid_grant')
    expect(await user.account()).to.equal(undefined)
  })

  it('posts the old password, which was right when it was checked, and gets no code', async () => {
    const user = await h.addVerified()
    const { url } = await h.party.begin()
    const login = () => h.login(user.agent, url, user.username)
    const answer = await resetDuring(`save login of ${user.id}`, user, login)
    expect(answer.status).to.equal(303)
    expect(ask.outcomeOf(await h.follow(user.agent, answer))).to.equal('400')
    expect(await user.account()).to.equal(undefined)
  })

  it('gives the consent that a login waited for, and gets no code', async () => {
    const user = await h.addVerified()
    await ask.parkAtConsent(h, user.agent, user)
    const give = () => user.agent.post(`${h.oauthUrl}/login`, { consent: 'yes' })
    const answer = await resetDuring(`save login of ${user.id}`, user, give)
    expect(answer.status).to.equal(303)
    expect(ask.outcomeOf(await h.follow(user.agent, answer))).to.equal('400')
    expect(await user.account()).to.equal(undefined)
  })

  it('would rotate a refresh token, and gets nothing: it is gone before it is used', async () => {
    const user = await ask.signedIn(h)
    const refresh = () => ask.refresh(h, user.tokens.refresh_token)
    expect(await resetDuring(`find ${user.id}`, user, refresh)).to.equal('invalid_grant')
    const { tokens } = await ask.signedIn(h)
    expect(await ask.refresh(h, tokens.refresh_token)).to.equal('tokens')
  })

  it('redeems a code, and all that it answers is dead', async () => {
    const user = await signedIn()
    const request = await ask.parkAtConsent(h, user.agent, user)
    const { location = '' } = await ask.consent(h, user.agent)
    const redeem = () => h.party.exchange(request, location)
    const tokens = await resetDuring(`find ${user.id}`, user, redeem)
    await ask.expectEnded(h, { ...user, tokens })
  })

  it('approves a device code, and the device gets no token', async () => {
    const user = await signedIn()
    const device = await ask.beginDevice(h)
    const approve = () => ask.confirmDevice(h, user.agent, device)
    const answer = await resetDuring(`find ${user.id}`, user, approve)
    expect(answer.status).to.equal(200)
    expect(await ask.pollDevice(h, device)).to.equal('invalid_grant')
  })

  it('opens the link of a blocked login, and is signed in nowhere', async () => {
    const login = await h.blockedLogin()
    const [{ link }, agent] = [login, await visitor()]
    const answer = await resetDuring('find Session', login, () => agent.get(link))
    expect(await h.accountOf(agent)).to.equal(undefined)
    if (ask.outcomeOf(answer) === 'code') {
      expect(await ask.redeem(h, login.request, answer.location)).to.equal('invalid_grant')
    }
  })

  it('opens the link of a blocked login, whose request is gone by then: it is confirmed, and nobody is signed in', async () => {
    const login = await h.blockedLogin()
    const elsewhere = login.in()
    await resetDuring('find Interaction', login, () => elsewhere.opensLink())
    await elsewhere.isOnlyVerified()
    expect(await elsewhere.account()).to.equal(undefined)
  })
})

describe('A host that finishes logins by itself, without finishLogin', () => {
  const gate = createGate()
  const h = suiteHarness({ usesHook: false, adapter: slowBy(gate) })

  async function heldLogin() {
    const user = await h.addVerified()
    const request = await h.party.begin()
    const held = await h.login(user.agent, request.url, user.username)
    expect(held.status).to.equal(303)
    return { user, request, follow: () => h.follow(user.agent, held) }
  }

  it('has its login results dated when they are saved: one held back over a reset is dead', async () => {
    const { user, follow } = await heldLogin()
    await user.getsBackIn(NEW)
    expect(ask.outcomeOf(await follow())).to.equal('400')
    expect(await user.account()).to.equal(undefined)
  })

  it('has its login results dated when they are saved: one taken during a reset is dead', async () => {
    const { user, request, follow } = await heldLogin()
    const answer = await gate.during('destroy Interaction', follow, () => user.getsBackIn(NEW))
    expect(setsSession(answer)).to.equal(true)
    expect(await ask.redeem(h, request, answer.location)).to.equal('invalid_grant')
    expect(await user.account()).to.equal(undefined)
  })

  for (const end of ['endSessions', 'passwordChanged'] as const) {
    it(`has its login let in right after flows.${end} has answered`, async () => {
      const user = await h.addVerified()
      // All of it fits into one second.
      await secondAfter(movableClock, new Date())
      await h.flows[end](user.id)
      expect(ask.outcomeOf(await user.signsIn())).to.equal('code')
      expect(await user.account()).to.equal(user.id)
    })
  }
})

describe('A link that was asked for by name, opened while flows.endSessions runs', () => {
  const h = suiteHarness()

  const times: Record<string, (end: () => Promise<unknown>) => unknown> = {
    'between the looks at it and at the cut-offs': (end) =>
      beforeFirst(h.store.cutoffs, 'read', end),
    'between its look-up and its session': (end) => beforeFirst(h.users, 'markEmailVerified', end),
  }
  for (const [when, endThen] of Object.entries(times)) {
    it(`signs nobody in where all ended ${when}`, async () => {
      const user = await h.addUnverified()
      await user.asksAgain(LOOSE)
      await endThen(() => h.flows.endSessions(user.id))
      await user.opensLink()
      expect(await user.account()).to.equal(undefined)
    })
  }
})

/** Before the answer to a login whose password was compared. */
let beforeFinish: (user: Person) => Promise<unknown> = async () => {}

const finishLogin =
  (h: () => Harness): Harness['flows']['finishLogin'] =>
  async (req, res, login) => {
    if (typeof login.account !== 'string') await beforeFinish(login.account as Person)
    return h().flows.finishLogin(req, res, login)
  }

const SECONDS = [0.9, 2, 60, -0.9, -2, -60]

const here = <T>(work: () => Promise<T>) => work()

/** In another process, whose clock is so much ahead. */
const ahead =
  (seconds: number) =>
  <T>(work: () => Promise<T>) =>
    byAnotherClock(seconds * 1_000, work)

onEachStore('A reset, where another process has another clock (FLT-14)', (technology) => {
  const h: Harness = suiteHarness({ technology, finishLogin: finishLogin(() => h) })
  afterEach(() => (beforeFinish = async () => {}))

  for (const seconds of SECONDS) {
    const elsewhere = ahead(seconds)

    it(`ends what was signed in there, ${seconds} s ahead, and lets the owner in there at once`, async () => {
      const thief = await h.addVerified()
      const [owner, held] = [thief.in(), thief.in()]
      await elsewhere(() => thief.signsIn())
      const stolen = await elsewhere(() => ask.offlineTokens(h, thief.agent, thief))
      expect(await thief.account()).to.equal(owner.id)
      const { url } = await h.party.begin()
      const heldAnswer = await elsewhere(() => h.login(held.agent, url, held.username))
      await owner.getsBackIn(NEW)

      expect(ask.outcomeOf(await elsewhere(() => owner.signsIn(NEW)))).to.equal('code')
      const tokens = await elsewhere(() => ask.offlineTokens(h, owner.agent, owner))
      for (const look of [elsewhere, here]) {
        await look(() => ask.expectEnded(h, { ...thief, tokens: stolen }))
        expect(await look(owner.account)).to.equal(owner.id)
        expect(await look(() => ask.isActive(h, tokens.access_token))).to.equal(true)
      }
      expect(await elsewhere(() => ask.refresh(h, tokens.refresh_token))).to.equal('tokens')
      expect(ask.outcomeOf(await h.follow(held.agent, heldAnswer))).to.equal('400')
      expect(await held.account()).to.equal(undefined)
    })

    it(`ends a login there, ${seconds} s ahead, whose old password was compared just before`, async () => {
      const user = await h.addVerified()
      const link = await user.forgets()
      beforeFinish = () => byAnotherClock(-seconds * 1_000, () => h.reset(link, NEW))
      expect(ask.outcomeOf(await elsewhere(() => user.signsIn()))).to.equal('400')
      expect(await user.account()).to.equal(undefined)
    })
  }
})

describe('A login on its way, whose password is another one by the time it is finished (FLT-14)', () => {
  const h: Harness = suiteHarness({ finishLogin: finishLogin(() => h) })
  afterEach(() => (beforeFinish = async () => {}))

  const change = async (user: Person, password: string) =>
    user.becomes({ passwordHash: await hashOf(password) })

  const meanwhile: Record<string, (user: Person) => Promise<unknown>> = {
    'a reset': (user) => user.getsBackIn(NEW),
    async 'half an hour, and a change by the host that ends all sessions'(user) {
      await moveTime(1_800_000)
      await change(user, NEW)
      await h.flows.endSessions(user.id)
    },
    async 'another hash of the same password, and a reset of that'(user) {
      await change(user, PASSWORD)
      await user.getsBackIn(NEW)
    },
    async 'two resets'(user) {
      await user.getsBackIn(NEW)
      await user.getsBackIn(`${NEW} still`)
    },
  }
  for (const [what, happens] of Object.entries(meanwhile)) {
    for (const seconds of [0, 2]) {
      it(`is ended by ${what}, where it is ${seconds} s ahead`, async () => {
        const user = await h.addVerified()
        beforeFinish = () => byAnotherClock(-seconds * 1_000, () => happens(user))
        const back = await ahead(seconds)(() => user.signsIn())
        expect(ask.outcomeOf(back)).to.equal('400')
        beforeFinish = async () => {}
        expect(await user.account()).to.equal(undefined)
      })
    }
  }

  it('is good where nothing ended, whatever was hashed anew meanwhile', async () => {
    const user = await h.addVerified()
    beforeFinish = () => change(user, PASSWORD)
    expect(ask.outcomeOf(await user.signsIn())).to.equal('code')
  })
})

onEachStore(
  'A link without a login, where another process has another clock (FLT-14)',
  (technology) => {
    const h: Harness = suiteHarness({ technology })

    for (const seconds of SECONDS) {
      const elsewhere = ahead(seconds)

      it(`signs in where it was made after everything was ended there, ${seconds} s ahead`, async () => {
        const user = await h.addUnverified()
        await elsewhere(() => h.flows.endSessions(user.id))
        await user.asksAgain(LOOSE)
        expect(ask.outcomeOf(await user.opensLink())).to.equal('code')
        expect(await user.account()).to.equal(user.id)
        await h.flows.endSessions(user.id)
        expect(await user.account()).to.equal(undefined)
      })

      it(`does nothing where it was made there, ${seconds} s ahead, before everything was ended`, async () => {
        const user = await h.addUnverified()
        const link = await elsewhere(() => user.asksAgain(LOOSE))
        await h.flows.endSessions(user.id)
        for (const look of [elsewhere, here]) {
          const again = user.in()
          expectPage(await look(() => again.opensLink(link)), 400, 'verify-email', 'expired')
          await again.getsNothing()
        }
        await user.asksAgain(LOOSE)
        expect(ask.outcomeOf(await user.opensLink())).to.equal('code')
      })
    }
  },
)

describe('A sign-in that the client asks for by itself (CIBA), and a reset', () => {
  const grant_type = 'urn:openid:params:grant-type:ciba'
  const client = { client_id: 'ciba', client_secret: 'a secret of the ciba client' }
  let asked: { jti: string } | undefined
  const h = suiteHarness({
    clients: [
      {
        ...client,
        token_endpoint_auth_method: 'client_secret_post',
        grant_types: [grant_type],
        redirect_uris: [],
        response_types: [],
        backchannel_token_delivery_mode: 'poll',
      },
      CLIENT,
    ],
    provider: {
      features: {
        devInteractions: { enabled: false },
        ciba: {
          enabled: true,
          deliveryModes: ['poll'],
          processLoginHintToken: async () => undefined,
          processLoginHint: async (_ctx: unknown, hint?: string) => hint,
          validateRequestContext: async () => {},
          validateBindingMessage: async () => {},
          verifyUserCode: async () => {},
          async triggerAuthenticationDevice(_ctx: unknown, request: { jti: string }) {
            asked = request
          },
        },
      },
    },
  })

  async function post(path: string, form: Record<string, string>) {
    const { text } = await createUserAgent().post(h.oauthUrl + path, { ...client, ...form })
    return JSON.parse(text) as Record<string, unknown>
  }

  async function askFor(login_hint: string) {
    const { auth_req_id: id } = await post('/backchannel', { scope: 'openid', login_hint })
    return () => post('/token', { grant_type, auth_req_id: String(id) })
  }

  /** As the host does once the person agreed on another device. */
  async function agree(accountId: string) {
    const grant = new h.provider.Grant({ accountId, clientId: 'ciba' })
    grant.addOIDCScope('openid')
    await grant.save()
    await h.provider.backchannelResult(asked?.jti ?? '', grant, {})
  }

  for (const seconds of [0, 2]) {
    it(`is good right after it, by a clock that is ${seconds} s ahead (FLT-14)`, async () => {
      const user = await h.addVerified()
      const link = await user.forgets()
      await ahead(seconds)(() => h.reset(link, NEW))
      const poll = await askFor(user.id)
      await agree(user.id)
      expect(await poll()).to.include.keys('id_token')
    })

    it(`is ended by it where it was agreed to before, by a clock that is ${seconds} s ahead (FLT-14)`, async () => {
      const user = await h.addVerified()
      const link = await user.forgets()
      const poll = await askFor(user.id)
      await ahead(seconds)(() => agree(user.id))
      await h.reset(link, NEW)
      expect(await poll()).to.include({ error: 'invalid_grant' })
    })
  }
})

onEachStore('A reset, and the logins of its own second (3.3)', (technology) => {
  const h: Harness = suiteHarness({ technology })

  it('ends those before it, keeps those after it, and lets nobody wait for the next second', async () => {
    const thief = await h.addVerified()
    const owner = thief.in()
    const link = await owner.forgets()
    await secondAfter(movableClock, new Date())
    await thief.signsIn()
    expect(await thief.account()).to.equal(owner.id)
    const began = Date.now() - performance.now()
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    expect(ask.outcomeOf(await owner.signsIn(NEW))).to.equal('code')
    expect(await owner.account()).to.equal(owner.id)
    expect(await thief.account()).to.equal(undefined)
    expect(Date.now() - performance.now() - began, 'time that was slept').to.be.below(10)
    await moveTime(60_000)
    expect(await owner.account()).to.equal(owner.id)
  })
})

describe('A reset whose effects fail on the way (SES-08, SES-09, I7)', () => {
  const hiccups = () => Promise.reject(new Error('the database hiccups'))
  /** Each fails once, at the named effect. */
  const failures: Record<string, (store: AccountFlowsStore) => () => number> = {
    'the token cannot be marked': ({ resetTokens }) =>
      beforeFirst(resetTokens, 'advance', hiccups, (_id, step) => step === 'used'),
    'sessions cannot be ended': ({ cutoffs }) => beforeFirst(cutoffs, 'end', hiccups),
    'the event cannot be recorded': ({ audit }) =>
      beforeFirst(audit, 'record', hiccups, (event) =>
        JSON.stringify(event).includes('password_reset_completed'),
      ),
  }

  const h = suiteHarness({ mayLogErrors: true })
  for (const [what, failing] of Object.entries(failures)) {
    it(`is finished by itself, ends what was signed in, and is recorded once, as ${what}`, async () => {
      const thief = await h.addVerified()
      const owner = thief.in()
      await thief.signsIn()
      const link = await owner.forgets()
      const tries = failing(h.store)
      const answer = await h.reset(link, NEW)
      expect([answer.status, answer.mode]).to.deep.equal([500, 'error'])
      await eventually('the reset is finished', async () => {
        await moveTime(1_000)
        return owner.events('password_reset_completed').at(0)
      })
      await secondAfter(movableClock, new Date())
      expect(await owner.hasPassword(NEW)).to.equal(true)
      expect(await thief.account()).to.equal(undefined)
      expect((await h.reset(link, 'another one')).mode).to.equal('invalid')
      expect(ask.outcomeOf(await owner.signsIn(NEW))).to.equal('code')
      expect(owner.events('password_reset_completed')).to.have.length(1)
      expect(tries()).to.equal(2)
    })
  }
})

describe('A reset whose eager deletion fails (the cut-off is the guarantee)', () => {
  const adapter = (inner: AdapterFactory) => (model: string) => ({
    ...inner(model),
    async destroyByAccountId(): Promise<number> {
      throw new Error(`${model} cannot be deleted`)
    },
  })
  const h = suiteHarness({ adapter, mayLogErrors: true })

  it('is done all the same, and nothing that was signed in stays signed in', async () => {
    const thief = await h.addVerified()
    const owner = thief.in()
    await thief.signsIn()
    expect(await thief.account()).to.equal(owner.id)
    await owner.getsBackIn(NEW)
    expect(await thief.account()).to.equal(undefined)
    expect(owner.events('password_reset_completed')).to.have.length(1)
    expect(ask.outcomeOf(await owner.signsIn(NEW))).to.equal('code')
    const unknown = { oauth: undefined, idp: undefined }
    expect(await h.flows.endSessions(owner.id)).to.deep.equal(unknown)
    expect(await owner.account()).to.equal(undefined)
  })
})

describe('An end whose deletion meets an outage', () => {
  const failing = (isEnded: (payload: AdapterPayload) => boolean) => (payload: AdapterPayload) => {
    if (isEnded(payload)) throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'it is away')
    return false
  }
  const adapter = (inner: AdapterFactory) => (model: string) => {
    const real = inner(model) as AccountAdapter
    const destroyByAccountId: AccountAdapter['destroyByAccountId'] = (id, isEnded) =>
      real.destroyByAccountId(id, failing(isEnded))
    return { ...real, destroyByAccountId }
  }
  const h = suiteHarness({ adapter, mayLogErrors: true })

  it('is done all the same, and recorded with what it ended', async () => {
    const user = await h.addVerified()
    await user.signsIn()
    const { idp } = await h.flows.endSessions(user.id)
    expect(idp).to.equal(1)
    expect(user.events('sessions_ended')).to.have.length(1)
    expect(await user.account()).to.equal(undefined)
    expect(ask.outcomeOf(await user.signsIn())).to.equal('code')
  })
})

describe('A stop while a reset is under way', () => {
  const gate = createGate()
  const adapter = (inner: AdapterFactory) => (model: string) => {
    const real = inner(model) as AccountAdapter
    return {
      ...real,
      async destroyByAccountId(id: string, isEnded: (payload: AdapterPayload) => boolean) {
        const count = await real.destroyByAccountId(id, isEnded)
        await gate.pass(`${count > 0 ? 'delete' : 'look at'} ${model}`)
        return count
      },
    }
  }
  const h = suiteHarness({ adapter })

  it('waits until what ended is deleted', async () => {
    const user = await h.addVerified()
    await user.signsIn()
    const link = await user.forgets()
    let stopping = Promise.resolve()
    let deleting = Promise.resolve()
    let isStopped = false
    const reset = () => h.reset(link, NEW)
    const { mode } = await gate.during('look at Session', reset, async () => {
      stopping = h.flows.stop().then(() => void (isStopped = true))
      const noted = async () => expect(isStopped).to.equal(false)
      deleting = gate.during('delete Session', async () => {}, noted)
    })
    expect(mode).to.equal('done')
    await Promise.all([deleting, stopping])
  })
})

describe('A reset whose last effect fails, and is repeated', () => {
  const store = keptInMemory(movableClock)
  const h = suiteHarness({ flows: { store: store.records }, mayLogErrors: true })

  it('ends nothing that was signed in since (3.3), and forgives no tries of logins again', async () => {
    const { advance } = store.resetTokens
    let failures = 0
    store.resetTokens.advance = async (id, step, at) => {
      if (step === 'completed') failures += 1
      if (step === 'completed' && failures < 4) throw new Error('the database hiccups')
      return advance(id, step, at)
    }
    const user = await h.addVerified()
    await h.reset(await user.forgets(), NEW)
    await moveTime(2_000)
    expect(ask.outcomeOf(await user.signsIn(NEW))).to.equal('code')
    const req = { headers: {}, socket: { remoteAddress: '127.0.0.1' } } as IncomingMessage
    const tries = Array.from({ length: 11 }, () => h.flows.limitLogin(req, user.username))
    expect((await Promise.all(tries)).at(-1)).to.be.above(0)
    await eventually('the reset is finished', async () => {
      await moveTime(11_000)
      return failures >= 4
    })
    expect(await user.account()).to.equal(user.id)
    expect(await h.flows.limitLogin(req, user.username)).to.be.above(0)
  })
})

describe('A reset that stopped after effect 1', () => {
  const h = suiteHarness({
    provider: { expiresWithSession: () => false },
    mayLogErrors: true,
  })

  it('and whose password was replaced again since, is rejected by the maintenance, overwrites nothing, and still ends what was signed in before', async () => {
    const thief = await h.addVerified()
    const [held, owner] = [thief.in(), thief.in()]
    await thief.signsIn()
    const request = await h.party.begin(ask.OFFLINE)
    const answer = await h.login(held.agent, request.url, held.username)
    const link = await owner.forgets()
    await secondAfter(movableClock, new Date())
    const { advance } = h.store.resetTokens
    h.store.resetTokens.advance = () => Promise.reject(new Error('the database is gone'))
    expect((await h.reset(link, NEW)).status).to.equal(500)
    await moveTime(2_000)
    expect((await h.follow(held.agent, answer)).mode).to.equal('consent')
    const { location = '' } = await ask.consent(h, held.agent)
    const stolen = await h.party.exchange(request, location)
    expect(await ask.isActive(h, stolen.access_token)).to.equal(true)
    const passwordHash = await hashOf(NEW)
    await owner.becomes({ passwordHash })
    expect(ask.outcomeOf(await owner.signsIn(NEW))).to.equal('code')
    const tokens = await ask.offlineTokens(h, owner.agent, owner)
    h.store.resetTokens.advance = advance
    await moveTime(60_000)
    await eventually('the maintenance rejects the reset', () =>
      owner.events('password_reset_rejected', 'newer_password').at(0),
    )
    expect((await h.users.findById(owner.id))?.passwordHash).to.equal(passwordHash)
    expect(await thief.account()).to.equal(undefined)
    expect(await ask.isActive(h, stolen.access_token)).to.equal(false)
    expect(await ask.refresh(h, stolen.refresh_token)).to.equal('invalid_grant')
    expect(await ask.isActive(h, tokens.access_token)).to.equal(true)
    await ask.expectAlive(h, { ...owner, tokens })
    expect(ask.outcomeOf(await owner.in().signsIn(NEW))).to.equal('code')
    expect((await h.reset(link, 'yet another one')).mode).to.equal('invalid')
  })

  it('still ends what was signed in before, where users are read a little late', async () => {
    const thief = await h.addVerified()
    await thief.signsIn()
    const link = await thief.forgets()
    const { findById } = h.users
    const before = await findById(thief.id)
    beforeFirst(h.store.resetTokens, 'advance', () => {
      h.users.findById = async (id) => (id === thief.id ? before : findById(id))
      throw new Error('the database is gone')
    })
    try {
      expect((await h.reset(link, NEW)).status).to.equal(500)
      await eventually('the maintenance rejects the reset', async () => {
        await moveTime(1_000)
        return thief.events('password_reset_rejected', 'newer_password').at(0)
      })
    } finally {
      h.users.findById = findById
    }
    expect(await thief.hasPassword(NEW)).to.equal(true)
    expect(await thief.account()).to.equal(undefined)
  })

  it('gives the tries at codes back once: those since count, also after the maintenance finished it', async () => {
    const name = `finished-late-${Date.now()}`
    const loginAt = async (email: string) =>
      h.blockedLogin({ user: await h.addUnverified({ email }) })
    const owner = await h.addVerified({ email: `${name}@users.example` })
    const link = await owner.forgets()
    const { advance } = h.store.resetTokens
    h.store.resetTokens.advance = async (...of) =>
      of[1] === 'completed' ? Promise.reject(new Error('the database is gone')) : advance(...of)
    expect((await h.reset(link, NEW)).mode).to.equal('done')
    for (let account = 0; account < 5; account += 1) {
      const login = await loginAt(`${name}@users.example`)
      for (let guess = 0; guess < 4; guess += 1)
        expectMode(await login.types(wrongCode(login.code, guess)), 400, 'blocked')
    }
    h.store.resetTokens.advance = advance
    await eventually('the maintenance completes the reset', async () => {
      await moveTime(1_000)
      const [token] = await h.store.resetTokens.ofUser(owner.id, 1)
      return token?.completedAt
    })
    const refused = await loginAt(`${name}@users.example`)
    const page = await refused.types(refused.code)
    expectMode(page, 400, 'blocked')
    expect(page.text).to.include('You can enter a code again')
    const other = await loginAt(`another-${name}@users.example`)
    await other.comesBack(await other.types())
  })
})

describe('An end of OAuth sessions alone, or of IdP sessions alone', () => {
  const grants = new Map<string, string>()
  const h = suiteHarness({
    provider: {
      // A host that keeps one grant for each account.
      async loadExistingGrant({ oidc: { provider, session } }) {
        const accountId = session?.accountId ?? ''
        const known = await provider.Grant.find(grants.get(accountId) ?? '')
        if (known) return known
        const grant = new provider.Grant({ accountId, clientId: CLIENT.client_id })
        grant.addOIDCScope('openid email')
        grants.set(accountId, await grant.save())
        return grant
      },
    },
  })

  for (const half of ['oauth', 'idp'] as const) {
    for (const asked of [{}, { prompt: 'login' }]) {
      it(`signs in again in the same browser after its ${half} sessions were ended, asked ${JSON.stringify(asked)}`, async () => {
        const user = await h.addVerified()
        await user.signsIn()
        const [now, never] = [new Date(), new Date(0)]
        const [at, idpAt] = half === 'oauth' ? [now, never] : [never, now]
        await h.store.cutoffs.end(user.id, { id: 'half', at, idpAt })
        expect((await user.starts(asked)).mode).to.equal('login')
        const back = await h.follow(user.agent, await ask.postLogin(h, user.agent, user))
        expect(await ask.redeem(h, user.request, back.location)).to.equal('tokens')
        expect(await user.account()).to.equal(user.id)
        const { location } = await user.starts()
        expect(await ask.redeem(h, user.request, location)).to.equal('tokens')
        await h.flows.endSessions(user.id)
        expect(await user.account()).to.equal(undefined)
      })
    }
  }
})

describe('A login that is under way while everything of its account is ended', () => {
  let meanwhile: (id: string) => Promise<unknown> = async () => {}
  const h: Harness = suiteHarness({
    // A host that tells no password: there the time of the login decides.
    async finishLogin(req, res, { account: { id }, startedAt }) {
      await meanwhile(id)
      await h.flows.finishLogin(req, res, { account: id, startedAt })
    },
  })

  it('is finished by nothing once it is blocked; its link verifies, and the next login is good', async () => {
    meanwhile = h.flows.endSessions
    const login = await h.blockedLogin()
    meanwhile = async () => {}
    const isOver = async () => expectPage(await login.goesOn(), 400, 'verify-email', 'ended')
    await isOver()
    await login.isOnlyVerified(await login.opensLink())
    await isOver()
    expect(ask.outcomeOf(await login.in().signsIn())).to.equal('code')
  })
})

describe('A fresh link for an old login', () => {
  const h = suiteHarness()

  it('does not finish a login that was checked with a password that is another one now', async () => {
    const login = await h.blockedLogin()
    await login.becomes({ passwordHash: await hashOf(NEW) })
    await login.asksAgain({ ...APP, state: login.request.state })
    const elsewhere = login.in()
    await elsewhere.isOnlyVerified(await elsewhere.opensLink())
    expect(ask.outcomeOf(await elsewhere.signsIn(NEW))).to.equal('code')
  })

  it('takes over no answer that another account gave in the same interaction', async () => {
    const login = await h.blockedLogin()
    const grant = new h.provider.Grant({ accountId: 'somebody', clientId: CLIENT.client_id })
    grant.addOIDCScope('openid email')
    const lastSubmission = {
      login: { accountId: 'somebody' },
      consent: { grantId: await grant.save() },
    }
    const pending = await h.store.pendingLogins.find({ id: login.loginId() })
    if (!pending) throw new Error('nothing waits')
    const captured = { ...pending.captured, lastSubmission } as typeof pending.captured
    await h.store.pendingLogins.save({ ...pending, captured }, 1)
    await login.comesBack(await login.opensElsewhere())
  })
})
