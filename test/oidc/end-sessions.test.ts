import { randomBytes } from 'node:crypto'
import bcrypt from 'bcrypt'
import { expect } from 'chai'
import Koa from 'koa'
import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider'
import { createKeyRing } from '../../src/crypto/keys.ts'
import { createSecretBox } from '../../src/crypto/secret-box.ts'
import { memoryAdapter, memoryStore, memoryUsers } from '../../src/index.ts'
import { secondAfter } from '../../src/ports/login-end.ts'
import { createEndableSessions } from '../../src/oidc/endable-sessions.ts'
import { expectOnlyVerified } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, type Harness, startHarness } from '../support/harness.ts'
import * as ask from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { movableClock, moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { expectMode, pendingOf, windowOf } from '../support/waiting-window.ts'
import { accountOf, addVerified, blockedLogin, type Person } from '../support/person.ts'

async function signIn(h: Harness, user: Person) {
  const agent = createUserAgent()
  const tokens = await ask.offlineTokens(h, agent, user)
  return { user, agent, tokens }
}

type SignedIn = Awaited<ReturnType<typeof signIn>>

async function expectAlive(h: Harness, { user, agent, tokens }: SignedIn) {
  expect(await accountOf(h, agent)).to.equal(user.id)
  expect(await ask.userinfo(h, tokens.access_token)).to.equal(200)
  expect(await ask.refresh(h, tokens.refresh_token)).to.equal('tokens')
}

async function expectDead(h: Harness, { agent, tokens }: SignedIn) {
  expect(await accountOf(h, agent)).to.equal(undefined)
  expect(await ask.userinfo(h, tokens.access_token)).to.equal(401)
  expect(await ask.refresh(h, tokens.refresh_token)).to.equal('invalid_grant')
}

onBothStores('flows.endSessions(accountId), and what it counts', (technology) => {
  const h = suiteHarness({ technology })

  it('ends everything of the account and nothing of any other, tells how much that was, and audits it', async () => {
    const ann = await signIn(h, await addVerified(h))
    const bob = await signIn(h, await addVerified(h))
    const held = createUserAgent()
    const heldAnswer = await h.login(held, (await h.party.begin()).url, ann.user.username)
    // The grant, the used code, the access token and the refresh token; the session and the held login.
    const counts = { oauth: 4, idp: 2 }
    expect(await h.flows.endSessions(ann.user.id)).to.deep.equal(counts)
    await expectDead(h, ann)
    await expectAlive(h, bob)
    expect(ask.outcomeOf(await h.follow(held, heldAnswer))).to.equal('400')
    const audited = h.events.filter(({ accountId }) => accountId === ann.user.id)
    expect(audited.map(({ type, details }) => ({ type, details }))).to.deep.equal([
      { type: 'sessions_ended', details: counts },
    ])
  })
})

describe('flows.endSessions(accountId)', () => {
  const h = suiteHarness()

  it('counts nothing where there is nothing', async () => {
    const { id } = await addVerified(h)
    expect(await h.flows.endSessions(id)).to.deep.equal({ oauth: 0, idp: 0 })
    expect(await h.flows.endSessions('nobody')).to.deep.equal({ oauth: 0, idp: 0 })
  })

  it('changes no password, and a login that begins once it resolved is good, time after time', async () => {
    const user = await addVerified(h)
    for (let time = 0; time < 3; time += 1) {
      const { agent, tokens } = await signIn(h, user)
      expect(await accountOf(h, agent)).to.equal(user.id)
      expect(await ask.isActive(h, tokens.refresh_token)).to.equal(true)
      await h.flows.endSessions(user.id)
      expect(await ask.isActive(h, tokens.refresh_token)).to.equal(false)
    }
  })
})

describe('flows.adapter(…)', () => {
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

  const adapters = {
    'a class': asClass,
    'a factory': ask.withoutAccounts,
    'a factory that is no arrow function': (factory: AdapterFactory): AdapterFactory =>
      function adapter(model) {
        return ask.withoutAccounts(factory)(model)
      },
  }

  for (const [kind, adapter] of Object.entries(adapters)) {
    describe(`wraps ${kind};`, () => {
      const h = suiteHarness({ adapter })

      it('where accounts cannot be found there are no counts, and everything is dead', async () => {
        const ann = await signIn(h, await addVerified(h))
        const bob = await signIn(h, await addVerified(h))
        const ended = await h.flows.endSessions(ann.user.id)
        expect(ended).to.deep.equal({ oauth: undefined, idp: undefined })
        await expectDead(h, ann)
        await expectAlive(h, bob)
      })
    })
  }
})

describe('The cut-off of an account', () => {
  const store = memoryStore()
  let reads: string[] = []
  const cutoffs = {
    ...store.cutoffs,
    read(accountId: string) {
      reads.push(accountId)
      return store.cutoffs.read(accountId)
    },
  }
  const h = suiteHarness({ flows: { store: { ...store, cutoffs } } })

  async function readsOf(request: () => Promise<unknown>): Promise<string[]> {
    reads = []
    await request()
    return reads.toSorted()
  }

  it('is read once a request of the provider, however many records are found', async () => {
    const user = await addVerified(h)
    const { agent, tokens } = await signIn(h, user)
    const request = await h.party.begin()
    const answer = await agent.get(request.url)
    const requests = {
      authorization: async () => agent.get((await h.party.begin({ prompt: 'none' })).url),
      code: () => h.party.exchange(request, answer.location ?? ''),
      userinfo: () => ask.userinfo(h, tokens.access_token),
      introspection: () => ask.isActive(h, tokens.access_token),
      refresh: () => ask.refresh(h, tokens.refresh_token),
    }
    for (const [name, ask] of Object.entries(requests)) {
      expect(await readsOf(ask), name).to.deep.equal([user.id])
    }
  })

  it('is read once when a login is resumed, and when a link is opened', async () => {
    const user = await addVerified(h)
    const agent = createUserAgent()
    const login = await h.login(agent, (await h.party.begin()).url, user.username)
    const resume = () => agent.get(login.location ?? '')
    expect(await readsOf(resume)).to.deep.equal([user.id])
    const blocked = await blockedLogin(h)
    expect(await readsOf(() => blocked.agent.get(blocked.link))).to.deep.equal([blocked.id])
  })

  it('is read once for each of two accounts that one request is about', async () => {
    const other = await signIn(h, await addVerified(h))
    const { link, user } = await blockedLogin(h)
    const both = [user.id, other.user.id].toSorted()
    expect(await readsOf(() => other.agent.get(link))).to.deep.equal(both)
  })

  it('is read anew by the next request', async () => {
    const { user, agent } = await signIn(h, await addVerified(h))
    expect(await accountOf(h, agent)).to.equal(user.id)
    await store.cutoffs.end(user.id, 'idp', { id: 'end', at: new Date() })
    expect(await accountOf(h, agent)).to.equal(undefined)
  })
})

const NEW = 'a new password'

describe('A reset whose eager deletion fails (the cut-off is the guarantee)', () => {
  it('is done all the same, and nothing that was signed in stays signed in', async () => {
    const inner = memoryAdapter()
    const adapter = (model: string) => ({
      ...inner(model),
      async destroyByAccountId(): Promise<number> {
        throw new Error(`${model} cannot be deleted`)
      },
    })
    const h = await startHarness({ adapter: () => adapter, mayLogErrors: true })
    try {
      const alice = await h.addUser({ username: 'alice' })
      const thief = createUserAgent()
      await h.signIn(thief, 'alice')
      expect(await accountOf(h, thief)).to.equal(alice.id)
      const done = await h.reset(await alice.forgets(), NEW)
      expect(done.mode).to.equal('done')
      expect(await accountOf(h, thief)).to.equal(undefined)
      expect(h.events.filter(({ type }) => type === 'password_reset_completed')).to.have.length(1)

      const owner = createUserAgent()
      expect((await h.signIn(owner, 'alice', NEW)).location).to.include('code=')
      const unknown = { oauth: undefined, idp: undefined }
      expect(await h.flows.endSessions(alice.id)).to.deep.equal(unknown)
      expect(await accountOf(h, owner)).to.equal(undefined)
    } finally {
      await h.close()
    }
  })
})

describe('A reset that stopped after effect 1, and whose password was replaced again since', () => {
  it('is rejected by the sweep, overwrites nothing, and still ends what was signed in before', async () => {
    const inner = memoryStore()
    let fails = true
    const store = {
      ...inner,
      resetTokens: {
        ...inner.resetTokens,
        async advance(...parts: Parameters<typeof inner.resetTokens.advance>) {
          if (fails) throw new Error('the database is gone')
          return inner.resetTokens.advance(...parts)
        },
      },
    }
    const h = await startHarness({
      flows: { store },
      provider: { expiresWithSession: () => false },
      mayLogErrors: true,
    })
    try {
      const alice = await h.addUser({ username: 'alice' })
      const thief = createUserAgent()
      await h.signIn(thief, 'alice')
      const [held, request] = [createUserAgent(), await h.party.begin(ask.OFFLINE)]
      const answer = await h.login(held, request.url, 'alice')
      const link = await alice.forgets()
      await secondAfter(movableClock, new Date())
      expect((await h.reset(link, NEW)).status).to.equal(500)
      await moveTime(2_000)
      expect((await h.follow(held, answer)).mode).to.equal('consent')
      const { location = '' } = await ask.consent(h, held)
      const stolen = await h.party.exchange(request, location)
      expect(await ask.isActive(h, stolen.access_token)).to.equal(true)
      const passwordHash = await bcrypt.hash(NEW, 5)
      await alice.becomes({ passwordHash })
      const owner = createUserAgent()
      expect((await h.signIn(owner, 'alice', NEW)).location).to.include('code=')
      const tokens = await ask.offlineTokens(h, owner, alice)
      fails = false
      await moveTime(60_000)
      await eventually('the sweep rejects the reset', () =>
        h.events.find(({ reason }) => reason === 'newer_password'),
      )
      expect((await h.users.findById(alice.id))?.passwordHash).to.equal(passwordHash)
      expect(await accountOf(h, thief)).to.equal(undefined)
      expect(await ask.isActive(h, stolen.access_token)).to.equal(false)
      expect(await ask.refresh(h, stolen.refresh_token)).to.equal('invalid_grant')
      expect(await accountOf(h, owner)).to.equal(alice.id)
      expect(await ask.isActive(h, tokens.access_token)).to.equal(true)
      expect(await ask.refresh(h, tokens.refresh_token)).to.equal('tokens')
      expect((await h.signIn(createUserAgent(), 'alice', NEW)).location).to.include('code=')
      expect((await h.reset(link, 'yet another one')).mode).to.equal('invalid')
    } finally {
      await h.close()
    }
  })
})

describe('A reset that stopped after effect 1, where users are read a little late', () => {
  const h = suiteHarness({ mayLogErrors: true })

  it('still ends what was signed in before', async () => {
    const alice = await addVerified(h)
    const thief = createUserAgent()
    await h.signIn(thief, alice.username)
    const link = await alice.forgets()
    const { findById } = h.users
    const { advance, takeUnfinished } = h.store.resetTokens
    const before = await findById(alice.id)
    let failed = 0
    h.store.resetTokens.advance = async (...of) => {
      failed += 1
      if (failed > 1) return advance(...of)
      h.users.findById = async (id) => (id === alice.id ? before : findById(id))
      throw new Error('the database is gone')
    }
    // Its lease has run out already.
    h.store.resetTokens.takeUnfinished = (at, until) =>
      takeUnfinished(new Date(at.getTime() + 60_000), until)
    try {
      expect((await h.reset(link, NEW)).status).to.equal(500)
      await eventually('the sweep rejects the reset', async () => {
        await moveTime(1_000)
        return alice.events('password_reset_rejected', 'newer_password').at(0)
      })
    } finally {
      Object.assign(h.users, { findById })
      Object.assign(h.store.resetTokens, { advance, takeUnfinished })
    }
    expect(await alice.hasPassword(NEW)).to.equal(true)
    expect(await accountOf(h, thief)).to.equal(undefined)
  })
})

describe('A request that began before a cut-off and ends after it', () => {
  const context = new Koa().createContext(
    ...([{ headers: {}, socket: {} }, {}] as unknown as Parameters<Koa['createContext']>),
  )

  for (const model of ['Grant', 'AccessToken']) {
    it(`makes no ${model} that lives, and a later request does`, async () => {
      const sessions = createEndableSessions({
        cutoffs: memoryStore().cutoffs,
        users: memoryUsers([]),
        clock: movableClock,
        log: () => {},
        box: createSecretBox(createKeyRing([randomBytes(32)])),
        readsAccounts: () => false,
        noteClients: async () => {},
      })
      const adapter = sessions.adapter(memoryAdapter())(model)
      const save = (id: string) => {
        const payload = { accountId: 'ann', iat: Math.floor(Date.now() / 1000) }
        return adapter.upsert(id, payload, 60)
      }
      await sessions.perRequest(context, async () => {
        const at = new Date()
        await sessions.endOAuthSessions('ann', { id: 'end', at })
        await secondAfter(movableClock, at)
        await save('in flight')
      })
      await sessions.perRequest(context, () => save('later'))
      expect(await adapter.find('in flight')).to.equal(undefined)
      expect(await adapter.find('later')).to.include({ accountId: 'ann' })
    })
  }
})

describe('An end that died between its halves', () => {
  const store = memoryStore()
  const grants = new Map<string, string>()
  const h = suiteHarness({
    flows: { store },
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
      it(`signs in again in the same browser after its ${half} sessions alone were ended, asked ${JSON.stringify(asked)}`, async () => {
        const [user, agent] = [await addVerified(h), createUserAgent()]
        await h.signIn(agent, user.username)
        await store.cutoffs.end(user.id, half, { id: 'half', at: new Date() })
        const request = await h.party.begin(asked)
        const page = await h.follow(agent, await agent.get(request.url))
        expect(page.mode).to.equal('login')
        const back = await h.follow(agent, await ask.postLogin(h, agent, user))
        expect(await ask.redeem(h, request, back.location)).to.equal('tokens')
        expect(await accountOf(h, agent)).to.equal(user.id)
        const next = await h.party.begin()
        const { location } = await agent.get(next.url)
        expect(await ask.redeem(h, next, location)).to.equal('tokens')
        await h.flows.endSessions(user.id)
        expect(await accountOf(h, agent)).to.equal(undefined)
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
    const login = await blockedLogin(h)
    meanwhile = async () => {}
    expectMode(await login.goesOn(), 400, 'ended')
    await login.isOnlyVerified(await login.agent.get(login.link))
    expectMode(await login.goesOn(), 400, 'ended')
    const next = await h.signIn(createUserAgent(), login.username)
    expect(next.location).to.include('code=')
  })
})

describe('A fresh link for an old login', () => {
  const h = suiteHarness()

  const resendFor = (user: Person, state: string) =>
    user.asksAgain({
      client_id: CLIENT.client_id,
      redirect_uri: CLIENT.redirect_uris[0],
      scope: 'openid email',
      state,
    })

  /** The link verifies in a new browser, which is not signed in after. */
  async function expectVerifiesOnly(user: Person, link: string) {
    const agent = createUserAgent()
    await expectOnlyVerified(h, { user, agent }, await agent.get(link))
  }

  it('does not finish a login that was checked with a password that is another one now', async () => {
    const bob = await h.addUser({ username: 'bob', emailVerified: false })
    const request = await h.party.begin()
    await h.login(createUserAgent(), request.url, 'bob')
    await h.mail.mailTo(bob.email ?? '')
    await bob.becomes({ passwordHash: await bcrypt.hash(NEW, 4) })
    await expectVerifiesOnly(bob, await resendFor(bob, request.state))
    expect((await h.signIn(createUserAgent(), 'bob', NEW)).location).to.include('code=')
  })

  it('signs nobody in once everything was ended since the login', async () => {
    const carol = await h.addUser({ username: 'carol', emailVerified: false })
    const request = await h.party.begin()
    await h.login(createUserAgent(), request.url, 'carol')
    await h.mail.mailTo(carol.email ?? '')
    await h.flows.endSessions(carol.id)
    await expectVerifiesOnly(carol, await resendFor(carol, request.state))
  })

  it('takes over no answer that another account gave in the same interaction', async () => {
    const login = await blockedLogin(h)
    const { client_id } = CLIENT
    const grant = new h.provider.Grant({ accountId: 'somebody', clientId: client_id })
    grant.addOIDCScope('openid email')
    const lastSubmission = {
      login: { accountId: 'somebody' },
      consent: { grantId: await grant.save() },
    }
    const pending = await pendingOf(h, windowOf(h, login))
    const captured = { ...pending.captured, lastSubmission } as typeof pending.captured
    await h.store.pendingLogins.save({ ...pending, captured }, 1)
    await login.comesBack(await createUserAgent().get(login.link))
  })
})
