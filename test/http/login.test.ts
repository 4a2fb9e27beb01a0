import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect } from 'chai'
import { interactionPolicy, Provider } from 'oidc-provider'
import { memoryAdapter, type LoginDecision } from '../../src/index.ts'
import {
  eventsOf,
  expectNothingChanged,
  expectOnlyVerified,
  expectStillWorks,
  resend,
  silently,
} from '../support/blocked-login.ts'
import { expectPage } from '../support/expect-page.ts'
import { CLIENT, PASSWORD, startHarness } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  sessionId,
  setsSession,
  type Person,
} from '../support/person.ts'

describe('POST {oauth_path}/login (4.8)', () => {
  const h = suiteHarness()

  it('renders the verification page in mode blocked instead of issuing a code, with a form for a new link', async () => {
    const login = await blockedLogin(h)
    const { blocked, user, request } = login
    expectPage(blocked, 200, 'verify-email', 'blocked')
    expect(blocked.headers.get('cache-control')).to.equal('no-store')
    expect(blocked.headers.get('content-type')).to.equal('text/html; charset=utf-8')
    expect(blocked.text).to.match(/<form[^>]*action="[^"]*\/oauth2\/resend-verification"/)
    expect(blocked.hidden).to.include({ username: user.username, state: request.state })
    expect(blocked.text).to.not.include(user.email)
    await login.getsNothing(blocked)
    await login.stillGetsIn()
  })

  it('says where the mail goes, so that its owner knows the address, and nobody else learns it', async () => {
    const addresses = {
      'somebody@mail.example.com': 's•••@m•••.com',
      "o'b@localhost": 'o•••@l•••',
      'x@y.z': 'x•••@y•••.z',
    }
    for (const [email, masked] of Object.entries(addresses)) {
      const { blocked } = await blockedLogin(h, { user: await addUnverified(h, { email }) })
      expect(blocked.text).to.include(masked).and.not.include(email)
    }
  })

  it('says nothing of where it goes, where no mail can go', async () => {
    for (const email of ['a@b.example, c@d.example', '']) {
      const user = await addUnverified(h, { email })
      const { url } = await h.party.begin()
      const blocked = await h.login(createUserAgent(), url, user.username)
      expectPage(blocked, 200, 'verify-email', 'blocked')
      expect(blocked.text).to.not.include('goes to').and.not.include('•••')
    }
  })

  it('sends the link to the stored address, and records the block', async () => {
    const { user, link } = await blockedLogin(h)
    expect(user.mailCount()).to.equal(1)
    expect(link.startsWith(`${h.oauthUrl}/verify-email?token=`)).to.equal(true)
    for (const type of ['email_login_blocked', 'email_verification_mail_sent'] as const) {
      const [event] = await eventsOf(h, { type, accountId: user.id })
      expect(event?.clientId).to.equal(CLIENT.client_id)
      expect(JSON.stringify(event)).to.not.include(new URL(link).searchParams.get('token'))
    }
  })

  it('blocks each further login, and does not take away what waits', async () => {
    const user = await addUnverified(h)
    const agent = createUserAgent()
    const first = await blockedLogin(h, { user, agent })
    const second = await blockedLogin(h, { user, agent })
    expect(second.link).to.not.equal(first.link)
    await first.stillGetsIn()
  })

  it('blocks a second post of the same interaction in the same way', async () => {
    const login = await blockedLogin(h)
    const { username } = login
    const form = { username, password: PASSWORD }
    const again = await login.agent.post(`${h.oauthUrl}/login`, form)
    expect([again.status, again.mode]).to.deep.equal([200, 'blocked'])
    await h.mail.mailTo(login.email ?? '', 2)
    await login.getsNothing(again)
    await login.stillGetsIn()
  })

  it('lets a verified user through, without a mail', async () => {
    const user = await addVerified(h)
    const agent = createUserAgent()
    const request = await h.party.begin()
    const answer = await h.login(agent, request.url, user.username)
    expect([answer.status, answer.mode]).to.deep.equal([303, undefined])
    const back = await h.follow(agent, answer)
    const tokens = await h.party.exchange(request, back.location ?? '')
    expect(tokens.claims()?.sub).to.equal(user.id)
    await resend(h, await addUnverified(h))
    expect(user.mailCount()).to.equal(0)
  })

  it('sends nothing for a wrong password, nor for an unknown or disabled user', async () => {
    const user = await addUnverified(h)
    const disabled = await addUnverified(h, { disabled: true })
    const agent = createUserAgent()
    for (const [username, password] of [
      [user.username, 'wrong'],
      [user.username, ''],
      [disabled.username, PASSWORD],
      ['nobody', PASSWORD],
    ] as const) {
      const { url } = await h.party.begin()
      const answer = await h.login(agent, url, username, password)
      expect([answer.status, answer.mode]).to.deep.equal([401, 'wrong'])
      await expectNothingChanged(h, { user, agent }, answer)
    }
    const login = await blockedLogin(h, { user, agent })
    expect(user.mailCount()).to.equal(1)
    expect(disabled.mailCount()).to.equal(0)
    await login.stillGetsIn()
  })

  it('sends nothing where the provider has no interaction to wait for', async () => {
    const user = await addUnverified(h)
    const agent = createUserAgent()
    const form = { username: user.username, password: PASSWORD }
    const answer = await agent.post(`${h.oauthUrl}/login`, form)
    expect([answer.status, answer.page]).to.deep.equal([400, undefined])
    await expectNothingChanged(h, { user, agent }, answer)
    await expectStillWorks(h, await blockedLogin(h, { user, agent }))
    expect(user.mailCount()).to.equal(1)
  })

  it('keeps two logins in two browsers apart', async () => {
    const user = await addUnverified(h)
    const here = await blockedLogin(h, { user })
    const there = await blockedLogin(h, { user })
    const answer = await there.agent.get(there.link)
    expect(setsSession(answer)).to.equal(true)
    expect(new URL(answer.location ?? '').searchParams.get('state')).to.equal(there.request.state)
    expect(await there.account()).to.equal(user.id)
    expect(sessionId(h, here.agent)).to.equal(undefined)
  })
})

type HostLogin = (
  req: IncomingMessage,
  res: ServerResponse,
  user: Person,
  startedAt: number,
) => Promise<void>

const NEW = 'a brand new password'
const second = () => Math.floor(Date.now() / 1000)

describe('What a host’s login calls (4.8)', () => {
  const h = suiteHarness({
    async finishLogin(req, res, { account, startedAt }) {
      try {
        await hostLogin(req, res, account, startedAt)
      } catch (error) {
        thrown = error
        res.writeHead(500).end()
      }
    },
  })
  const honestLogin: HostLogin = (req, res, account, startedAt) =>
    h.flows.finishLogin(req, res, { account, startedAt })
  let hostLogin: HostLogin
  let thrown: unknown

  beforeEach(() => {
    hostLogin = honestLogin
    thrown = undefined
  })

  async function expectVerifiedSignsIn() {
    const [agent, user] = [createUserAgent(), await addVerified(h)]
    expect((await h.signIn(agent, user.username)).location).to.match(/[?&]code=/)
    expect(await accountOf(h, agent)).to.equal(user.id)
  }

  for (const [title, accountOfUser] of [
    ['the user’s record', (user: Person) => user],
    ['the user’s id', (user: Person) => user.id],
  ] as const) {
    it(`blocks or finishes, given ${title}`, async () => {
      hostLogin = (req, res, user, startedAt) =>
        h.flows.finishLogin(req, res, { account: accountOfUser(user), startedAt })
      await expectStillWorks(h, await blockedLogin(h))
      await expectVerifiedSignsIn()
    })

    it(`decides without an answer, given ${title}: a page that posts by script goes on with what it is told`, async () => {
      hostLogin = async (req, res, user, startedAt) => {
        const account = accountOfUser(user)
        const decision = await h.flows.decideLogin(req, res, { account, startedAt })
        expect(res.headersSent).to.equal(false)
        res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(decision))
      }
      const signIn = async (user: Person) => {
        const [agent, request] = [createUserAgent(), await h.party.begin()]
        const answer = await h.login(agent, request.url, user.username)
        return { agent, request, answer, decision: JSON.parse(answer.text) as LoginDecision }
      }

      const verified = await addVerified(h)
      const done = await signIn(verified)
      if (!('location' in done.decision)) throw new Error('the login is blocked')
      const onwards = await done.agent.get(done.decision.location)
      const tokens = await h.party.exchange(done.request, onwards.location ?? '')
      expect(tokens.claims()?.sub).to.equal(verified.id)

      const user = await addUnverified(h)
      const { agent, request, answer, decision } = await signIn(user)
      expect([answer.status, setsSession(answer)]).to.deep.equal([200, false])
      if (!('blocked' in decision) || !('location' in decision.blocked)) {
        throw new Error('the login goes on')
      }
      expect(decision.blocked).to.include({
        reason: 'email_unverified',
        lifetimeMs: 24 * 3_600_000,
      })
      const waiting = await agent.get(decision.blocked.location)
      expectPage(waiting, 200, 'verify-email', 'blocked')
      const { link } = await h.mail.mailTo(user.email ?? '')
      const code = await agent.get(link)
      const claims = (await h.party.exchange(request, code.location ?? '')).claims()
      expect(claims?.sub).to.equal(user.id)
    })

    it(`answers only when it blocks, given ${title}: blockUnverified`, async () => {
      const answers: boolean[] = []
      hostLogin = async (req, res, user, startedAt) => {
        const login = { account: accountOfUser(user), startedAt }
        const isBlocked = await h.flows.blockUnverified(req, res, login)
        answers.push(isBlocked)
        expect(res.writableEnded).to.equal(isBlocked)
        if (isBlocked) return
        const { provider } = h
        await provider.interactionFinished(req, res, { login: { accountId: user.id } })
      }
      await expectStillWorks(h, await blockedLogin(h))
      await expectVerifiedSignsIn()
      await h.put({ require_email_verification: 'false' })
      const back = await h.signIn(createUserAgent(), (await addUnverified(h)).username)
      await h.put({ require_email_verification: 'true' })
      expect(back.location).to.match(/[?&]code=/)
      expect(answers).to.deep.equal([true, false, false])
    })
  }

  it('goes by the id alone for a user whose record says verified since', async () => {
    const user = await addUnverified(h)
    hostLogin = async (req, res, found, startedAt) => {
      await h.users.markEmailVerified(user.id, user.email ?? '')
      await h.flows.finishLogin(req, res, { account: found.id, startedAt })
    }
    const back = await h.signIn(createUserAgent(), user.username)
    expect(back.location).to.match(/[?&]code=/)
    expect(user.mailCount()).to.equal(0)
  })

  for (const hash of [undefined, null, '']) {
    it(`signs in after a reset where the host hands on ${JSON.stringify(hash)} for the hash`, async () => {
      const user = await addVerified(h)
      hostLogin = (req, res, found, startedAt) => {
        // @ts-expect-error: some hosts strip the hash so
        const account: typeof found = { ...found, passwordHash: hash }
        return h.flows.finishLogin(req, res, { account, startedAt })
      }
      await h.reset(await user.forgets(), 'a brand new password')
      await moveTime(1_000)
      const back = await h.signIn(createUserAgent(), user.username, 'a brand new password')
      expect(back.location).to.match(/[?&]code=/)
    })

    it(`blocks a login that its link finishes, where the host hands on ${JSON.stringify(hash)} for the hash`, async () => {
      hostLogin = (req, res, found, startedAt) => {
        // @ts-expect-error: some hosts strip the hash so
        const account: typeof found = { ...found, passwordHash: hash }
        return h.flows.finishLogin(req, res, { account, startedAt })
      }
      await expectStillWorks(h, await blockedLogin(h))
      await expectVerifiedSignsIn()
    })
  }

  it('keeps acr, amr and remember for the session that the link creates', async () => {
    const more = { acr: 'gold', amr: ['pwd'], remember: false }
    hostLogin = (req, res, account, startedAt) =>
      h.flows.finishLogin(req, res, { account, startedAt, ...more })
    const login = await blockedLogin(h)
    const answer = await login.agent.get(login.link)
    const cookies = answer.headers.getSetCookie().filter((line) => line.startsWith('_session='))
    expect(cookies).to.have.length(1)
    expect(cookies[0]).to.not.match(/expires/i)
    const session = await h.provider.Session.find(sessionId(h, login.agent) ?? '')
    expect([session?.acr, session?.amr]).to.deep.equal(['gold', ['pwd']])
  })

  it('says of a browser that had the link alone what is so: by e-mail, when it was opened (VER-23)', async () => {
    hostLogin = (req, res, account, startedAt) =>
      h.flows.finishLogin(req, res, { account, startedAt, acr: 'gold', amr: ['pwd'] })
    const login = await blockedLogin(h)
    await moveTime(90_000)
    const elsewhere = createUserAgent()
    const openedAt = second()
    const tokens = await login.comesBack(await elsewhere.get(login.link))
    expect(tokens.claims()?.auth_time ?? openedAt).to.be.at.least(openedAt)
    const session = await h.provider.Session.find(sessionId(h, elsewhere) ?? '')
    expect([session?.acr, session?.amr]).to.deep.equal([undefined, ['email']])
    expect(session?.loginTs).to.be.at.least(openedAt)
  })

  it('dates the session at the login, and not at the click', async () => {
    let began = 0
    hostLogin = (req, res, account, startedAt) => {
      began = startedAt - 30
      return h.flows.finishLogin(req, res, { account, startedAt: began })
    }
    const login = await blockedLogin(h)
    await login.stillGetsIn()
    const session = await h.provider.Session.find(sessionId(h, login.agent) ?? '')
    expect(session?.loginTs).to.equal(began)
  })

  it('refuses a startedAt that is not from loginStarted()', async () => {
    const user = await addUnverified(h)
    const verified = await addVerified(h)
    const wrong: unknown[] = [Date.now(), second() + 3600, second() + 0.5, NaN, Infinity]
    for (const startedAt of [...wrong, undefined, null, String(second()), new Date()]) {
      for (const call of ['finishLogin', 'blockUnverified'] as const) {
        hostLogin = async (req, res, account) => {
          await h.flows[call](req, res, { account, startedAt: startedAt as number })
        }
        for (const { username } of [user, verified]) {
          const agent = createUserAgent()
          thrown = undefined
          const { url } = await h.party.begin()
          const answer = await h.login(agent, url, username)
          expect(thrown, String(startedAt)).to.be.instanceOf(TypeError)
          expect(String(thrown)).to.include('loginStarted()')
          expect(answer.status).to.equal(500)
          await expectNothingChanged(h, { user, agent }, answer)
        }
      }
    }
    hostLogin = honestLogin
    const login = await blockedLogin(h, { user })
    expect(user.mailCount()).to.equal(1)
    await login.stillGetsIn()
  })

  it('tells the second of the login, whole', () => {
    const before = second()
    const startedAt = h.flows.loginStarted()
    expect(Number.isInteger(startedAt)).to.equal(true)
    expect(startedAt).to.be.within(before, second())
  })

  describe('when a reset runs between the check of the old password and the end of the login', () => {
    async function resetWhileChecking(user: Person) {
      const link = await user.forgets()
      hostLogin = async (req, res, account, startedAt) => {
        expect((await h.reset(link, NEW)).mode).to.equal('done')
        await h.flows.finishLogin(req, res, { account, startedAt })
      }
    }

    it('ends a login dead: no session and no code', async () => {
      const user = await addVerified(h)
      await resetWhileChecking(user)
      const agent = createUserAgent()
      const { url } = await h.party.begin()
      const answer = await h.follow(agent, await h.login(agent, url, user.username))
      expect(answer.location).to.equal(undefined)
      expect(answer.status).to.equal(400)
      expect(setsSession(answer)).to.equal(false)
      expect(sessionId(h, agent)).to.equal(undefined)
      expect((await silently(h, agent)).get('error')).to.equal('login_required')

      hostLogin = honestLogin
      const fresh = createUserAgent()
      expect((await h.signIn(fresh, user.username, NEW)).location).to.match(/[?&]code=/)
    })

    it('lets the link of a blocked login verify, and sign nobody in', async () => {
      const user = await addUnverified(h)
      await resetWhileChecking(user)
      const agent = createUserAgent()
      const { url } = await h.party.begin()
      const answer = await h.login(agent, url, user.username)
      expect(answer.mode).to.equal('blocked')
      await expectNothingChanged(h, { user, agent }, answer)
      // The first mail was the one with the reset link.
      const { link } = await h.mail.mailTo(user.email ?? '', 2)
      expect(link).to.include('/verify-email?')
      await expectOnlyVerified(h, { user, agent }, await agent.get(link))
    })
  })

  it('refuses to attach to a provider whose adapter is not flows.adapter(…)', async () => {
    const issuer = h.oauthUrl
    const interactions = { policy: h.flows.policy(interactionPolicy.base()) }
    const other = await startHarness()
    for (const adapter of [
      undefined,
      memoryAdapter(),
      class {
        find = async () => undefined
        findByUid = async () => undefined
        findByUserCode = async () => undefined
        upsert = async () => {}
        consume = async () => {}
        destroy = async () => {}
        revokeByGrantId = async () => {}
      },
      other.flows.adapter(memoryAdapter()),
    ]) {
      const provider = new Provider(issuer, { interactions, ...(adapter && { adapter }) })
      const attach = () => h.flows.attach(provider)
      expect(attach).to.throw(TypeError, /flows\.adapter.*memoryAdapter\(\)/)
    }
    await other.close()
    const login = await blockedLogin(h)
    await login.stillGetsIn()
    expect(await login.isVerified()).to.equal(true)
  })
})
