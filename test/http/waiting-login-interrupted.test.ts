import { expect } from 'chai'
import { PAR_ONLY, pushedLogin, THEIR_FEATURES } from '../support/clients.ts'
import { CLIENT, CONFIDENTIAL } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { suiteHarnessBehindProxy } from '../support/harness-behind-proxy.ts'
import type { Moment } from '../support/mongo-proxy.ts'
import { describeWithMongo } from '../support/mongod.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'
import { expectMode, windowOf } from '../support/waiting-window.ts'
import { addUnverified, blockedLogin, sessionId, type Person } from '../support/person.ts'

const LIMITS = { serverSelectionTimeoutMS: 5_000, socketTimeoutMS: 5_000 }

describeWithMongo('A login that waits, when the database fails between two steps [full]', () => {
  const { h, proxy } = suiteHarnessBehindProxy(LIMITS, { mayLogErrors: true })

  /** The connection is lost at this write, and the page says that it can be tried again. */
  async function failing(
    collection: string,
    when: Moment['when'],
    work: () => Promise<Answer>,
    nth = 1,
  ): Promise<void> {
    const isWrite = (name: string) => ['insert', 'update', 'findAndModify'].includes(name)
    const outage = proxy.interrupt(
      {
        matches: (command) => command.collection === collection && isWrite(command.name),
        nth,
        when,
      },
      async () => {},
    )
    const answer = await work()
    expect((await outage.happened)?.collection).to.equal(collection)
    expect([answer.status, answer.mode]).to.deep.equal([503, 'unavailable'])
    expect(answer.location).to.equal(undefined)
    expect(answer.headers.getSetCookie()).to.deep.equal([])
  }

  /** Nothing is lost: a login that begins now goes through. */
  async function expectNextLoginWorks({ agent, user }: Person) {
    const { location } = await h.signIn(agent, user.username)
    expect(location).to.match(/[?&]code=/)
  }

  const expectNothingVerified = async ({ user }: Person) =>
    expect(await user.isVerified()).to.equal(false)

  it('before the address is verified: nothing is used, and the link does all of its work', async () => {
    const login = await blockedLogin(h)
    await failing('users', 'before', () => login.agent.get(login.link))
    expect(await login.isVerified()).to.equal(false)
    await login.stillGetsIn()
  })

  for (const [collection, when, step, nth] of [
    ['users', 'after', 'the address is verified, and nobody was told', 1],
    ['email_verification_tokens', 'before', 'before the token is marked used', 1],
    ['email_verification_tokens', 'after', 'the token is marked used', 1],
    // The first is before the address is verified.
    ['pending_logins', 'before', 'before what began meanwhile is ended', 2],
    ['pending_logins', 'after', 'what began meanwhile is ended, and the answer is lost', 2],
  ] as const) {
    it(`${step}: the link says verified, and the button of the window goes on`, async () => {
      const login = await blockedLogin(h)
      const elsewhere = createUserAgent()
      await failing(collection, when, () => elsewhere.get(login.link), nth)
      expect(await login.isVerified()).to.equal(true)
      expect(sessionId(h, elsewhere)).to.equal(undefined)
      const again = await elsewhere.get(login.link)
      expect(again.mode).to.be.oneOf(['verified', 'expired'])
      expect(again.location).to.equal(undefined)
      await login.comesBack(await login.goesOn())
    })
  }

  it('in the browser that logged in, before the turn is taken: the window still has it', async () => {
    const login = await blockedLogin(h)
    await failing('pending_logins', 'before', () => login.agent.get(login.link), 3)
    await login.comesBack(await login.goesOn())
  })

  it('before the window takes its turn: it tries again', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await createUserAgent().get(login.link)
    await failing('pending_logins', 'before', () => window.goOn())
    await login.comesBack(await window.goOn())
  })

  for (const [collection, when, step, nth] of [
    ['pending_logins', 'after', 'the turn is taken, and the answer is lost', 1],
    // The first is that of the question whether the client may still ask.
    ['interaction', 'before', 'the turn is taken, and the provider was not reached', 2],
    ['session', 'before', 'the turn is taken, and the session is not saved', 1],
    ['authorization_code', 'before', 'the turn is taken, and the code is not saved', 1],
    ['authorization_code', 'after', 'the turn is taken, and nobody learns the code', 1],
  ] as const) {
    it(`${step}: the window has its turn again, once (RACE-13)`, async () => {
      const login = await blockedLogin(h)
      const window = windowOf(h, login)
      await createUserAgent().get(login.link)
      await failing(collection, when, () => window.goOn(), nth)
      expect(sessionId(h, login.agent)).to.equal(undefined)
      await login.comesBack(await window.goOn())
      expectMode(await window.goOn(), 200, 'signed_in')
      await expectNextLoginWorks(login)
    })
  }

  for (const [collection, when, step, nth] of [
    ['pending_logins', 'before', 'before the turn is taken', 1],
    ['interaction', 'before', 'the turn is taken, and the provider was not reached', 2],
    ['pending_logins', 'before', 'the client would be answered, and the login is not ended', 2],
  ] as const) {
    it(`while it is left, ${step}: it waits on, and can be left (RACE-13)`, async () => {
      for (const action of ['cancel', 'other_account']) {
        const login = await blockedLogin(h)
        const window = windowOf(h, login)
        await failing(collection, when, () => window.goOn({ action }), nth)
        expectMode(await window.reload(), 200, 'blocked')
        expect((await window.goOn({ action })).status).to.equal(302)
        expectMode(await window.reload(), 400, 'ended')
        await expectNothingVerified(login)
      }
    })
  }

  it('while it is left, the login is ended, and the answer is lost: its page says so', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await failing('pending_logins', 'after', () => window.goOn({ action: 'cancel' }), 2)
    expectMode(await window.goOn({ action: 'cancel' }), 400, 'ended')
    expectMode(await login.agent.get(login.link), 200, 'verified')
    await expectNextLoginWorks(login)
  })

  it('in the browser that logged in, the turn is taken, and the code is not saved: the window has the turn again (RACE-13)', async () => {
    const login = await blockedLogin(h)
    await failing('authorization_code', 'before', () => login.agent.get(login.link))
    expect(await login.isVerified()).to.equal(true)
    await login.comesBack(await login.goesOn())
  })
})

describe('A login that waits, when the provider fails', () => {
  let fault: { model: string; error: Error } | undefined
  const h = suiteHarness({
    mayLogErrors: true,
    clients: [CLIENT, CONFIDENTIAL, PAR_ONLY],
    provider: {
      features: { ...THEIR_FEATURES, clientCredentials: { enabled: true } },
      renderError: (ctx, out) => void (ctx.body = out.error),
    },
    adapter: (adapter) => (model) => {
      const inner = adapter(model)
      return {
        ...inner,
        async upsert(...saved) {
          const [, { prompt, result }] = saved
          // Without a login it is that of the question whether the client may still ask.
          const isQuestion = prompt !== undefined && result === undefined
          if (fault?.model === model && !isQuestion) {
            const { error } = fault
            fault = undefined
            throw error
          }
          return inner.upsert(...saved)
        },
      }
    },
  })

  const models = ['Interaction', 'Session', 'AuthorizationCode']

  /** The provider fails once, at this model, and the page says so: nothing is finished, and nothing goes to the client. */
  async function failing(model: string, work: () => Promise<Answer>) {
    fault = { model, error: new Error('the disk is full') }
    const answer = await work()
    expect(fault, 'it failed').to.equal(undefined)
    expect([answer.status, answer.page, answer.location]).to.deep.equal([500, 'error', undefined])
    expect(answer.headers.getSetCookie()).to.deep.equal([])
  }

  for (const model of models) {
    it(`at its ${model}: the window has its turn again, once (RACE-13)`, async () => {
      const login = await blockedLogin(h)
      const window = windowOf(h, login)
      await login.opensElsewhere()
      await failing(model, () => window.goOn())
      await login.comesBack(await window.goOn())
      expectMode(await window.goOn(), 200, 'signed_in')
    })
  }

  for (const model of models.slice(1)) {
    it(`at its ${model}, by the link in its browser: the window has the turn again, once (RACE-13)`, async () => {
      const login = await blockedLogin(h)
      const window = windowOf(h, login)
      await failing(model, () => login.agent.get(login.link))
      expect(await login.isVerified()).to.equal(true)
      expect((await login.agent.get(login.link)).location).to.equal(undefined)
      await login.comesBack(await window.goOn())
      expectMode(await window.goOn(), 200, 'signed_in')
    })
  }

  it('by the link in its browser, of a client that must push its requests: the window has the turn again (RACE-13)', async () => {
    const { login } = await pushedLogin(h)
    await failing('AuthorizationCode', () => login.agent.get(login.link))
    await login.comesBack(await login.goesOn())
  })

  it('at a link that no login waits for: it leads nowhere, and the next sign-in goes through', async () => {
    const user = await addUnverified(h)
    const agent = createUserAgent()
    const link = await user.asksAgain({
      client_id: CONFIDENTIAL.client_id,
      redirect_uri: CONFIDENTIAL.redirect_uris[0],
      scope: 'openid',
    })
    await failing('AuthorizationCode', () => agent.get(link))
    expect(await user.isVerified()).to.equal(true)
    expect((await h.signIn(agent, user.username)).location).to.match(/[?&]code=/)
  })

  it('goes on once, of 20 windows at the same moment, one of which fails (RACE-13)', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await login.opensElsewhere()
    fault = { model: 'AuthorizationCode', error: new Error('the disk is full') }
    const answers = await Promise.all(Array.from({ length: 20 }, () => window.goOn()))
    expect(answers.filter(({ status }) => status === 500)).to.have.length(1)
    const hasCode = ({ location = '' }: Answer) => location.includes('code=')
    const last = await window.goOn()
    expect([...answers, last].filter(hasCode)).to.have.length(1)
  })
})
