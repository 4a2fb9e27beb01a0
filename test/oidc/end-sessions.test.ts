import { expect } from 'chai'
import { type Adapter, type AdapterFactory, type AdapterPayload } from 'oidc-provider'
import { memoryStore, type User } from '../../src/index.ts'
import { accountOf, addVerified, blockedLogin } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { type Harness } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import * as ask from '../support/oauth-requests.ts'
import { createUserAgent } from '../support/user-agent.ts'

async function signIn(h: Harness, user: User) {
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

onBothStores('flows.endSessions(accountId), and what it counts (D10)', (technology) => {
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

describe('flows.endSessions(accountId) (D10)', () => {
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

describe('flows.adapter(…) (D9)', () => {
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
    expect(await readsOf(() => blocked.agent.get(blocked.link))).to.deep.equal([blocked.user.id])
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
    await store.cutoffs.endIdpSessions(user.id, new Date())
    expect(await accountOf(h, agent)).to.equal(undefined)
  })
})
