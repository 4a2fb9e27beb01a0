import bcrypt from 'bcrypt'
import { expect } from 'chai'
import Koa from 'koa'
import { memoryAdapter, memoryStore } from '../../src/index.ts'
import { secondAfter } from '../../src/login-second.ts'
import { createEndableSessions } from '../../src/oidc/endable-sessions.ts'
import { eventually } from '../support/eventually.ts'
import { blockedLogin, expectResumed } from '../support/blocked-login.ts'
import { CLIENT, startHarness, type Harness } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import { movableClock, moveTime } from '../support/time.ts'
import { pendingOf, windowOf } from '../support/waiting-window.ts'

const NEW = 'a new password'

async function silently(h: Harness, agent: UserAgent): Promise<string> {
  const { url } = await h.party.begin({ prompt: 'none' })
  return (await h.follow(agent, await agent.get(url))).location ?? ''
}

describe('A reset whose eager deletion fails (D9: the cut-off is the guarantee)', () => {
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
      expect(await silently(h, thief)).to.include('code=')
      const done = await h.reset(await h.resetLink(alice), NEW)
      expect(done.mode).to.equal('done')
      expect(await silently(h, thief)).to.include('error=login_required')
      expect(h.events.filter(({ type }) => type === 'password_reset_completed')).to.have.length(1)

      const owner = createUserAgent()
      expect((await h.signIn(owner, 'alice', NEW)).location).to.include('code=')
      expect(await h.flows.endSessions(alice.id)).to.deep.equal({
        oauth: undefined,
        idp: undefined,
      })
      expect(await silently(h, owner)).to.include('error=login_required')
    } finally {
      await h.close()
    }
  })
})

describe('A reset that stopped after effect 1, and whose password was replaced again since (D5)', () => {
  it('is rejected by the sweep, overwrites nothing, and still ends what was signed in before', async () => {
    const inner = memoryStore()
    let fails = true
    const store = {
      ...inner,
      resetTokens: {
        ...inner.resetTokens,
        async markUsed(id: string, at: Date) {
          if (fails) throw new Error('the database is gone')
          return inner.resetTokens.markUsed(id, at)
        },
      },
    }
    const h = await startHarness({ flows: { store }, mayLogErrors: true })
    try {
      const alice = await h.addUser({ username: 'alice' })
      const thief = createUserAgent()
      await h.signIn(thief, 'alice')
      const link = await h.resetLink(alice)
      await secondAfter(movableClock, new Date())
      expect((await h.reset(link, NEW)).status).to.equal(500)
      const passwordHash = await bcrypt.hash(NEW, 5)
      await h.changeUser(alice, { passwordHash })
      fails = false
      await moveTime(60_000)
      await eventually('the sweep rejects the reset', () =>
        h.events.find(({ reason }) => reason === 'newer_password'),
      )
      expect((await h.users.findById(alice.id))?.passwordHash).to.equal(passwordHash)
      expect(await silently(h, thief)).to.include('error=login_required')
      expect((await h.signIn(createUserAgent(), 'alice', NEW)).location).to.include('code=')
      expect((await h.reset(link, 'yet another one')).mode).to.equal('invalid')
    } finally {
      await h.close()
    }
  })
})

describe('A request that began before a cut-off and ends after it (D9)', () => {
  const context = new Koa().createContext(
    ...([{ headers: {}, socket: {} }, {}] as unknown as Parameters<Koa['createContext']>),
  )

  for (const model of ['Grant', 'AccessToken']) {
    it(`makes no ${model} that lives, and a later request does`, async () => {
      const sessions = createEndableSessions(memoryStore().cutoffs, movableClock, () => {})
      const adapter = sessions.adapter(memoryAdapter())(model)
      const save = (id: string) => {
        const payload = { accountId: 'ann', iat: Math.floor(Date.now() / 1000) }
        return adapter.upsert(id, payload, 60)
      }
      await sessions.perRequest(context, async () => {
        const at = new Date()
        await sessions.endOAuthSessions('ann', at)
        await secondAfter(movableClock, at)
        await save('in flight')
      })
      await sessions.perRequest(context, () => save('later'))
      expect(await adapter.find('in flight')).to.equal(undefined)
      expect(await adapter.find('later')).to.include({ accountId: 'ann' })
    })
  }
})

describe('A fresh link for an old login (D6, D9)', () => {
  const h = suiteHarness()

  const resend = (username: string, state: string) =>
    createUserAgent().post(`${h.oauthUrl}/resend-verification`, {
      username,
      client_id: CLIENT.client_id,
      redirect_uri: CLIENT.redirect_uris[0],
      scope: 'openid email',
      state,
    })

  it('does not finish a login that was checked with a password that is another one now', async () => {
    const bob = await h.addUser({ username: 'bob', emailVerified: false })
    const request = await h.party.begin()
    await h.login(createUserAgent(), request.url, 'bob')
    await h.mail.mailTo(bob.email ?? '')
    await h.changeUser(bob, { passwordHash: await bcrypt.hash(NEW, 4) })
    await resend('bob', request.state)
    const { link } = await h.mail.mailTo(bob.email ?? '', 2)
    const agent = createUserAgent()
    const answer = await agent.get(link)
    expect([answer.status, answer.mode]).to.deep.equal([200, 'verified'])
    expect(agent.cookiesFor(h.oauthUrl)).to.equal('')
    expect((await h.signIn(createUserAgent(), 'bob', NEW)).location).to.include('code=')
  })

  it('signs nobody in once everything was ended since it was mailed', async () => {
    const carol = await h.addUser({ username: 'carol', emailVerified: false })
    await resend('carol', 'a state')
    const { link } = await h.mail.mailTo(carol.email ?? '')
    await h.flows.endSessions(carol.id)
    const agent = createUserAgent()
    const answer = await agent.get(link)
    expect([answer.status, answer.mode]).to.deep.equal([200, 'verified'])
    expect(agent.cookiesFor(h.oauthUrl)).to.equal('')
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
    await h.store.pendingLogins.save({ ...pending, captured })
    await expectResumed(h, login, await createUserAgent().get(login.link))
  })
})
