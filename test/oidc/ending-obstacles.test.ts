import bcrypt from 'bcrypt'
import { expect } from 'chai'
import Koa from 'koa'
import { memoryAdapter, memoryStore, type User } from '../../src/index.ts'
import { secondAfter } from '../../src/login-second.ts'
import { createEndableSessions } from '../../src/oidc/endable-sessions.ts'
import { eventually } from '../support/eventually.ts'
import {
  accountOf,
  blockedLogin,
  expectOnlyVerified,
  expectResumed,
  resend,
} from '../support/blocked-login.ts'
import { CLIENT, startHarness } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { movableClock, moveTime } from '../support/time.ts'
import { pendingOf, windowOf } from '../support/waiting-window.ts'

const NEW = 'a new password'

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
      expect(await accountOf(h, thief)).to.equal(alice.id)
      const done = await h.reset(await h.resetLink(alice), NEW)
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
      expect(await accountOf(h, thief)).to.equal(undefined)
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

  const resendFor = (user: User, state: string) =>
    resend(h, user, {
      client_id: CLIENT.client_id,
      redirect_uri: CLIENT.redirect_uris[0],
      scope: 'openid email',
      state,
    })

  /** The link verifies in a new browser, which is not signed in after. */
  async function expectVerifiesOnly(user: User, link: string) {
    const agent = createUserAgent()
    await expectOnlyVerified(h, { user, agent }, await agent.get(link))
  }

  it('does not finish a login that was checked with a password that is another one now', async () => {
    const bob = await h.addUser({ username: 'bob', emailVerified: false })
    const request = await h.party.begin()
    await h.login(createUserAgent(), request.url, 'bob')
    await h.mail.mailTo(bob.email ?? '')
    await h.changeUser(bob, { passwordHash: await bcrypt.hash(NEW, 4) })
    await expectVerifiesOnly(bob, await resendFor(bob, request.state))
    expect((await h.signIn(createUserAgent(), 'bob', NEW)).location).to.include('code=')
  })

  it('signs nobody in once everything was ended since it was mailed', async () => {
    const carol = await h.addUser({ username: 'carol', emailVerified: false })
    const link = await resendFor(carol, 'a state')
    await h.flows.endSessions(carol.id)
    await expectVerifiesOnly(carol, link)
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
