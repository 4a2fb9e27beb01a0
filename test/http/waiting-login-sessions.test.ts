import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { koaHost } from '../../examples/hosts/koa.ts'
import type { User } from '../../src/index.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  changeUser,
  expectResumed,
  isVerified,
  sessionId,
  setsSession,
  silently,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { expectMode, openElsewhere, windowOf } from '../support/waiting-window.ts'

onBothStores('A waiting window in a browser with a session (D15, D16)', (technology) => {
  let harness: Harness

  before(async () => {
    harness = await startHarness({ technology })
  })
  after(() => harness.close())

  const sessionOf = (agent: UserAgent) =>
    harness.provider.Session.find(sessionId(harness, agent) ?? '')

  async function signIn(browser: UserAgent): Promise<User> {
    const owner = await addVerified(harness)
    const request = await harness.party.begin({ prompt: 'login' })
    const answer = await harness.login(browser, request.url, owner.username)
    const back = await harness.follow(browser, answer)
    expect(back.location).to.match(/[?&]code=/)
    return owner
  }

  function expectQuestion(page: Answer, users: User[]) {
    expectMode(page, 200, 'other_account')
    expect(setsSession(page)).to.equal(false)
    for (const { username, email, id } of users) {
      expect(page.text).to.not.include(username)
      expect(page.text).to.not.include(email ?? '')
      expect(page.text).to.not.include(`"${id}"`)
    }
  }

  const answerTo = (login: BlockedLogin, { hidden }: Answer, action: string) =>
    windowOf(harness, login).goOn({ session: hidden['session'] ?? '', action })

  describe('of another account, which came after the login that waits,', () => {
    let login: BlockedLogin
    let owner: User
    let browser: UserAgent

    beforeEach(async () => {
      login = await blockedLogin(harness)
      browser = login.agent
      owner = await signIn(browser)
      expect(await accountOf(harness, browser)).to.equal(owner.id)
      await openElsewhere(login)
    })

    it('asks first, names neither account, and takes no turn (VER-18)', async () => {
      const session = sessionId(harness, browser)
      const window = windowOf(harness, login)
      for (const _time of [1, 2, 3]) expectQuestion(await window.goOn(), [owner, login.user])
      expect(sessionId(harness, browser)).to.equal(session)
      expect(await accountOf(harness, browser)).to.equal(owner.id)
      expect(await window.status()).to.equal('verified')
      const page = await window.goOn()
      await expectResumed(harness, login, await answerTo(login, page, 'continue'))
    })

    it('replaces the session after "continue": a new one, and nothing of the old', async () => {
      const before = await sessionOf(browser)
      const page = await windowOf(harness, login).goOn()
      await expectResumed(harness, login, await answerTo(login, page, 'continue'))
      const after = await sessionOf(browser)
      expect([before?.accountId, after?.accountId]).to.deep.equal([owner.id, login.user.id])
      expect(after?.jti).to.not.equal(before?.jti)
      expect(after?.uid).to.not.equal(before?.uid)
      expect(await harness.provider.Session.find(before?.jti ?? '')).to.equal(undefined)
    })

    it('leaves it, and the turn, after "only confirm"', async () => {
      const session = sessionId(harness, browser)
      const page = await windowOf(harness, login).goOn()
      expectMode(await answerTo(login, page, 'confirm_only'), 200, 'verified')
      expect(sessionId(harness, browser)).to.equal(session)
      expect(await accountOf(harness, browser)).to.equal(owner.id)
      await expectResumed(harness, login, await answerTo(login, page, 'continue'))
    })

    it('asks again where a third account is signed in by the time of the answer', async () => {
      const page = await windowOf(harness, login).goOn()
      const session = await sessionOf(browser)
      await session?.destroy()
      const third = await signIn(browser)
      const again = await answerTo(login, page, 'continue')
      expectQuestion(again, [owner, login.user, third])
      expect(again.hidden['session']).to.not.equal(page.hidden['session'])
      expect(await accountOf(harness, browser)).to.equal(third.id)
      await expectResumed(harness, login, await answerTo(login, again, 'continue'))
    })

    it('takes no answer that names another session, or none', async () => {
      const window = windowOf(harness, login)
      const foreign = createUserAgent()
      await signIn(foreign)
      const other = await sessionOf(foreign)
      for (const session of ['', 'x', other?.uid ?? '']) {
        expectQuestion(await window.goOn({ session, action: 'continue' }), [owner, login.user])
      }
      expectQuestion(await window.goOn({ action: 'continue' }), [owner, login.user])
      expect(await accountOf(harness, browser)).to.equal(owner.id)
      expect(await accountOf(harness, foreign)).to.not.equal(undefined)
      const page = await window.goOn()
      await expectResumed(harness, login, await answerTo(login, page, 'continue'))
    })

    it('lets the form lead to the client and nowhere else', async () => {
      const page = await windowOf(harness, login).goOn()
      const policy = page.headers.get('content-security-policy') ?? ''
      expect(policy).to.include("form-action 'self' https:;")
      await expectResumed(harness, login, await answerTo(login, page, 'continue'))
    })
  })

  async function endSession(
    agent: UserAgent,
    answer: { logout?: 'yes' },
    headers?: Record<string, string>,
  ) {
    const { hidden } = await agent.get(`${harness.oauthUrl}/session/end`, headers)
    const ended = await agent.post(`${harness.oauthUrl}/session/end/confirm`, {
      ...hidden,
      ...answer,
    })
    expect(ended.status).to.equal(303)
  }

  it('goes on in no window once the person has signed out of the browser', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    await openElsewhere(login)
    expect(await window.status()).to.equal('verified')
    await harness.signIn(login.agent, login.user.username)
    expect(await accountOf(harness, login.agent)).to.equal(login.user.id)
    await endSession(login.agent, { logout: 'yes' })
    expect(await window.status()).to.equal('ended')
    expectMode(await window.goOn(), 400, 'ended')
    expectMode(await window.reload(), 400, 'ended')
    expect(await accountOf(harness, login.agent)).to.equal(undefined)
    const next = await blockedLogin(harness, { agent: login.agent })
    await openElsewhere(next)
    await expectResumed(harness, next, await windowOf(harness, next).goOn())
  })

  it('goes on though another site led the browser to sign out, where nobody was signed in', async () => {
    const login = await blockedLogin(harness)
    await openElsewhere(login)
    await endSession(login.agent, { logout: 'yes' }, { 'sec-fetch-site': 'cross-site' })
    expect(await windowOf(harness, login).status()).to.equal('verified')
    await expectResumed(harness, login, await windowOf(harness, login).goOn())
  })

  it('goes on where the person was asked whether to sign out, and stayed', async () => {
    const login = await blockedLogin(harness)
    await openElsewhere(login)
    await harness.signIn(login.agent, login.user.username)
    await endSession(login.agent, {})
    expect(await accountOf(harness, login.agent)).to.equal(login.user.id)
    await expectResumed(harness, login, await windowOf(harness, login).goOn())
  })

  it('says of a window that went on before that it did, and nothing of the other account that came since', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    await expectResumed(harness, login, await login.agent.get(login.link))
    await (await sessionOf(login.agent))?.destroy()
    const owner = await signIn(login.agent)
    for (const answer of [await window.goOn(), await window.reload()]) {
      expectMode(answer, 400, 'continued')
      expect(answer.text).to.not.include(owner.username)
    }
    expect(await accountOf(harness, login.agent)).to.equal(owner.id)
  })

  it('asks about the account of a window of the same browser that went on before', async () => {
    const agent = createUserAgent()
    const first = await blockedLogin(harness, { agent })
    const second = await blockedLogin(harness, { agent })
    await openElsewhere(first)
    await openElsewhere(second)
    await expectResumed(harness, first, await windowOf(harness, first).goOn())
    const page = await windowOf(harness, second).goOn()
    expectQuestion(page, [first.user, second.user])
    expect(await accountOf(harness, agent)).to.equal(first.user.id)
    await expectResumed(harness, second, await answerTo(second, page, 'continue'))
    expect(await accountOf(harness, agent)).to.equal(second.user.id)
  })

  it('keeps a session of the same account, under a new name', async () => {
    const user = await addVerified(harness)
    const agent = createUserAgent()
    await harness.signIn(agent, user.username)
    const before = await sessionOf(agent)
    await changeUser(harness, user, { emailVerified: false })
    const login = await blockedLogin(harness, { user, agent })
    await openElsewhere(login)
    await expectResumed(harness, login, await windowOf(harness, login).goOn())
    const after = await sessionOf(agent)
    expect([before?.accountId, after?.accountId]).to.deep.equal([user.id, user.id])
    expect(after?.jti).to.not.equal(before?.jti)
    expect(await harness.provider.Session.find(before?.jti ?? '')).to.equal(undefined)
  })

  it('replaces an anonymous session that somebody planted (SES-07)', async () => {
    const login = await blockedLogin(harness)
    const victim = login.agent
    await victim.get(`${harness.oauthUrl}/session/end`)
    const planted = sessionId(harness, victim)
    const cookie = victim.cookiesFor(`${harness.oauthUrl}/auth`)
    expect(planted).to.be.a('string')
    await openElsewhere(login)
    await expectResumed(harness, login, await windowOf(harness, login).goOn())
    expect(sessionId(harness, victim)).to.not.equal(planted)
    const { url } = await harness.party.begin({ prompt: 'none' })
    const { location = '' } = await createUserAgent().get(url, { cookie })
    expect(new URL(location).searchParams.get('error')).to.equal('login_required')
    expect((await silently(harness, victim)).has('code')).to.equal(true)
  })

  it('signs nobody in with a login that somebody else made in a browser of his own (VER-22)', async () => {
    const attacker = await blockedLogin(harness)
    await openElsewhere(attacker)
    const victims = [createUserAgent(), (await blockedLogin(harness)).agent]
    for (const victim of victims) {
      expectMode(await windowOf(harness, attacker).in(victim).goOn(), 400, 'ended')
      expect(sessionId(harness, victim)).to.equal(undefined)
    }
    await expectResumed(harness, attacker, await windowOf(harness, attacker).goOn())
  })
})

onBothStores('The cookie by which the browser that logged in is known (D15)', (technology) => {
  const NAME = 'account_flows_browser'
  const lineOf = ({ headers }: Answer) =>
    headers.getSetCookie().find((line) => line.includes(NAME)) ?? ''
  const valueOf = (line: string) => /=([\w-]{43});/.exec(line)?.[1]

  describe('over http', () => {
    let harness: Harness
    let remember: boolean | undefined

    before(async () => {
      harness = await startHarness({
        technology,
        host: (parts) =>
          koaHost({
            ...parts,
            async login(req, res) {
              if (req.method !== 'POST') return parts.login(req, res)
              const startedAt = parts.flows.loginStarted()
              const form = new URLSearchParams(await text(req))
              const account = await harness.users.findByUsername(form.get('username') ?? '')
              if (!account) throw new Error('the tests only sign in users that exist')
              const asked = remember === undefined ? {} : { remember }
              await parts.flows.finishLogin(req, res, { account, startedAt, ...asked })
            },
          }),
      })
    })
    after(() => harness.close())
    beforeEach(() => {
      remember = undefined
    })

    it('is for no script and no other site, lives as long as the login can wait, and is stored hashed', async () => {
      const login = await blockedLogin(harness)
      const line = lineOf(login.blocked)
      const value = valueOf(line)
      const eightDays = 8 * 86_400
      expect(line).to.equal(
        `${NAME}=${value}; Max-Age=${eightDays}; Path=/; HttpOnly; SameSite=Lax`,
      )
      const stored = await harness.store.pendingLogins.find(windowOf(harness, login).id)
      expect(JSON.stringify(stored)).to.not.include(value)
      expect(stored?.browserHash).to.match(/^[\da-f]{64}$/)
    })

    it('stays the same for the browser, and is another one for each', async () => {
      const agent = createUserAgent()
      const lines: string[] = []
      for (const _time of [1, 2])
        lines.push(lineOf((await blockedLogin(harness, { agent })).blocked))
      const elsewhere = lineOf((await blockedLogin(harness)).blocked)
      expect(lines[0]).to.equal(lines[1])
      expect(valueOf(elsewhere)).to.match(/^[\w-]{43}$/)
      expect(valueOf(elsewhere)).to.not.equal(valueOf(lines[0] ?? ''))
    })

    it('is given to nobody who is not blocked, and not by a link', async () => {
      const login = await blockedLogin(harness)
      const elsewhere = createUserAgent()
      for (const answer of [
        await harness.signIn(createUserAgent(), (await addVerified(harness)).username),
        await elsewhere.get(login.link),
      ]) {
        expect(lineOf(answer)).to.equal('')
      }
      expect(elsewhere.cookiesFor(harness.oauthUrl)).to.not.include(NAME)
      await expectResumed(harness, login, await windowOf(harness, login).goOn())
    })

    it('ends with the browser where the login is not to be remembered', async () => {
      remember = false
      const login = await blockedLogin(harness)
      const line = lineOf(login.blocked)
      expect(line).to.equal(`${NAME}=${valueOf(line)}; Path=/; HttpOnly; SameSite=Lax`)
      await openElsewhere(login)
      const answer = await windowOf(harness, login).goOn()
      const session = answer.headers.getSetCookie().find((each) => each.startsWith('_session='))
      expect(session).to.not.match(/expires|max-age/i)
      await expectResumed(harness, login, answer)
    })

    it('of the person before gives the next person of a browser nothing', async () => {
      const agent = createUserAgent()
      const before = await blockedLogin(harness, { agent })
      const next = await blockedLogin(harness, { agent })
      await openElsewhere(next)
      expect(await windowOf(harness, before).status()).to.equal('waiting')
      expectMode(await windowOf(harness, before).goOn(), 200, 'blocked')
      await expectResumed(harness, next, await windowOf(harness, next).goOn())
      expect(await isVerified(harness, before.user)).to.equal(false)
    })
  })

  it('is bound to this host over https', async () => {
    const harness = await startHarness({ technology, flows: { baseUrl: 'https://idp.example' } })
    const user = await addUnverified(harness)
    const agent = createUserAgent()
    const { url } = await harness.party.begin()
    const line = lineOf(await harness.login(agent, url, user.username))
    await harness.close()
    const name = `__Host-${NAME}`
    expect(line).to.match(
      new RegExp(`^${name}=[\\w-]{43}; Max-Age=691200; Path=/; HttpOnly; SameSite=Lax; Secure$`),
    )
  })
})
