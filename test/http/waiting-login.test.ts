import { expect } from 'chai'
import type { CheckedLogin } from '../../src/index.ts'
import {
  onEachStore,
  PASSWORD,
  startHarness,
  type Harness,
  suiteHarness,
} from '../support/harness.ts'
import { shapeOf } from '../support/observe.ts'
import { expectExpired, expectMode, setsSession, type Person } from '../support/person.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'

/** What its form can ask for: to go on, or to leave. */
const ASKED = [{}, { action: 'cancel' }, { action: 'other_account' }]

/** Its button and a reload of its page say this, and nothing else comes of them. */
async function expectSays(login: Person, status: number, mode: string): Promise<Answer[]> {
  const answers = [await login.goesOn(), await login.reloads()]
  for (const answer of answers) {
    expectMode(answer, status, mode)
    expect(setsSession(answer)).to.equal(false)
  }
  return answers
}

async function expectGoesOn(login: Person) {
  await login.comesBack(await login.goesOn())
  expect(await login.account()).to.equal(login.id)
}

async function expectGoesOnByLinkElsewhere(login: Person) {
  await login.opensElsewhere()
  await expectGoesOn(login)
}

/** A page that waits for a login of this name, whether or not there is one, asked in both ways. */
async function windowNamed({ oauthUrl }: Harness, id: string, agent: UserAgent) {
  const url = `${oauthUrl}/verify-email/waiting`
  return {
    page: shapeOf(await agent.get(`${url}?login=${id}`)),
    post: shapeOf(await agent.post(url, { login: id })),
  }
}

describe('The page that waits goes on by its button', () => {
  const h = suiteHarness()

  it('goes on to the client, with its own state, nonce and PKCE, once the link was opened in another browser, which in mode off has a code as well (VER-15)', async () => {
    const login = await h.blockedLogin()
    const elsewhere = createUserAgent()
    await login.comesBack(await elsewhere.get(login.link))
    const answer = await login.goesOn()
    expect(setsSession(answer)).to.equal(true)
    const tokens = await login.comesBack(answer)
    expect(tokens.claims()?.['nonce']).to.equal(login.request.nonce)
    for (const agent of [login.agent, elsewhere]) {
      expect(await h.accountOf(agent)).to.equal(login.id)
    }
  })

  it('goes nowhere before, says so, and keeps its turn; a reload shows it again and consumes nothing', async () => {
    const login = await h.blockedLogin()
    for (const _time of [1, 2, 3]) {
      const [answer] = await expectSays(login, 200, 'blocked')
      await login.getsNothing(answer)
    }
    await login.opensElsewhere()
    const page = await login.reloads()
    expectMode(page, 200, 'blocked')
    expect(page.hidden['login']).to.equal(login.loginId())
    expect(setsSession(page)).to.equal(false)
    expect(page.headers.get('cache-control')).to.equal('no-store')
    await expectGoesOn(login)
  })

  it('goes on once, or leaves its turn to the link in the same browser; it says that it is over, not that one is signed in, once the session is gone again', async () => {
    for (const finish of [expectGoesOnByLinkElsewhere, (login: Person) => login.stillGetsIn()]) {
      const login = await h.blockedLogin()
      await finish(login)
      await expectSays(login, 200, 'signed_in')
      await (await h.sessionOf(login.agent))?.destroy()
      await expectSays(login, 400, 'ended')
    }
  })

  it('has gone on before the link is opened in the same browser, as require_email_verification is false: that verifies, and makes no second code', async () => {
    for (const isSignedIn of [true, false]) {
      const login = await h.blockedLogin()
      await h.put({ require_email_verification: 'false' })
      const { location = '' } = await login.goesOn()
      const tokens = await login.party.exchange(login.request, location)
      expect(tokens.claims()?.sub).to.equal(login.id)
      expect(await login.isVerified()).to.equal(false)
      if (!isSignedIn) await (await h.sessionOf(login.agent))?.destroy()
      const answer = await login.opensLink()
      expectMode(answer, 200, 'verified')
      expect(setsSession(answer)).to.equal(false)
      expect(await login.isVerified()).to.equal(true)
      expectExpired(await login.opensLink())
      await h.put({ require_email_verification: 'true' })
    }
  })

  it('learns that somebody else verified the account: support, an import, or a process that died then; and goes on with each login of the account, each with its own request', async () => {
    for (const verify of [
      ({ id, email = '' }: Person) => h.users.markEmailVerified(id, email),
      (user: Person) => user.becomes({ emailVerified: true }),
    ]) {
      const login = await h.blockedLogin()
      const second = await h.blockedLogin({ agent: login.agent, user: login })
      expect(login.loginId()).to.not.equal(second.loginId())
      await verify(login)
      expectMode(await login.in().reloads(), 400, 'ended')
      for (const each of [second, login]) await expectGoesOn(each)
      expectMode(await login.opensElsewhere(), 200, 'verified')
    }
  })

  it('is over once another login of the account verified the address, by its link or its code', async () => {
    for (const verify of [
      (login: Person) => login.opensLink(),
      (login: Person) => login.opensElsewhere(),
      (login: Person) => login.types(),
    ]) {
      const left = await h.blockedLogin()
      const login = await h.blockedLogin({ user: left })
      await login.comesBack(await verify(login))
      await expectSays(left, 400, 'ended')
      expect(h.sessionId(left.agent)).to.equal(undefined)
    }
  })

  it('waits as long as the latest link works, and ends alike for everybody', async () => {
    const login = await h.blockedLogin()
    await moveTime(24 * 3_600_000)
    expect(await windowNamed(h, login.loginId(), login.agent)).to.deep.equal(
      await windowNamed(h, 'nobody', login.agent),
    )
    expectMode(await login.reloads(), 400, 'ended')
    expectExpired(await login.opensElsewhere())
    const { login: _, ...form } = login.blocked.hidden
    await login.asksAgain(form)
    await expectGoesOnByLinkElsewhere(login)
  })

  it('leads to its client from every page that it is on, however long the request of the client is', async () => {
    const login = await h.blockedLogin({ extra: { state: 's'.repeat(10_000) } })
    expect(login.link).to.not.include('state=')
    expect(login.link.length).to.be.below(500)
    const ask = (more = {}) =>
      login.agent.post(`${h.oauthUrl}/resend-verification`, { ...login.blocked.hidden, ...more })
    const policyOf = ({ headers }: Answer) => headers.get('content-security-policy')
    const sent = await ask()
    expect(sent.mode).to.equal('sent')
    for (const page of [login.blocked, sent]) {
      expect(policyOf(page)).to.include("form-action 'self' https:;")
    }
    const other = await ask({ redirect_uri: 'com.evil.app:/cb' })
    expect(policyOf(other)).to.include("form-action 'self';")
    await login.comesBack(await login.opensElsewhere())
    await expectGoesOn(login)
  })

  describe('to others it tells and gives nothing:', () => {
    let login: Person

    beforeEach(async () => {
      login = await h.blockedLogin()
    })

    it('a browser without the cookie, a foreign one, and an id of nobody look alike, byte for byte (VER-21)', async () => {
      const id = login.loginId()
      const other = await h.blockedLogin()
      const expired = `${id.slice(1)}x`
      // It is kept for a week more.
      const purgeAt = new Date(Date.now() + 7 * 24 * 3_600_000 - 1)
      await h.store.pendingLogins.save({ ...(await pendingOf(h, login)), id: expired, purgeAt }, 2)
      for (const isConfirmed of [false, true]) {
        if (isConfirmed) await login.opensElsewhere()
        const [first, ...others] = await Promise.all([
          windowNamed(h, id, createUserAgent()),
          windowNamed(h, id, other.agent),
          ...['nobody', '', expired].map((name) => windowNamed(h, name, login.agent)),
        ])
        expect([first?.page.status, first?.post.status]).to.deep.equal([400, 400])
        expect(first?.page.text).to.include('data-mode="ended"')
        for (const each of others) expect(each).to.deep.equal(first)
      }
      await expectGoesOn(login)
    })

    it('the id alone, the cookie alone, and a cookie that somebody made up are good for nothing, whatever they ask for, be it that of a thief or the victim of a login that somebody planted (VER-17, VER-22, VER-24)', async () => {
      const [thief, waiting] = [login.in(), await h.blockedLogin()]
      expectMode(await thief.types(), 400, 'ended')
      await thief.getsNothing()
      await login.opensElsewhere()
      const cookie = login.agent.cookiesFor(`${h.oauthUrl}/verify-email`)
      for (const asked of ASKED) {
        for (const other of [thief, login.in(waiting.agent)]) {
          expectMode(await other.goesOn(asked), 400, 'ended')
          expect(h.sessionId(other.agent)).to.equal(undefined)
        }
        for (const id of ['', 'x', login.id, login.interaction, waiting.loginId()]) {
          expectMode(await thief.goesOn({ ...asked, login: id }, { cookie }), 400, 'ended')
        }
        for (const value of ['', 'x', '%00', 'A'.repeat(43), 'A'.repeat(44), '{"$gt":""}']) {
          const made = { cookie: `account_flows_browser=${value}` }
          expectMode(await thief.goesOn(asked, made), 400, 'ended')
        }
      }
      expect(h.sessionId(thief.agent)).to.equal(undefined)
      await expectGoesOn(login)
      await expectGoesOnByLinkElsewhere(waiting)
    })

    // Forms of other sites, and fields that come twice, are in test/http/refusals.test.ts.
    it('an address, whatever it asks for (VER-24)', async () => {
      await login.opensElsewhere()
      for (const asked of ASKED) {
        const query = new URLSearchParams({ login: login.loginId(), ...asked })
        const url = `${h.oauthUrl}/verify-email/waiting?${query}`
        expectMode(await login.agent.get(url), 200, 'blocked')
      }
      await expectGoesOn(login)
    })
  })
})

async function pendingOf(h: Harness, login: Person) {
  const pending = await h.store.pendingLogins.find({ id: login.loginId() })
  if (!pending) throw new Error('nothing waits')
  return pending
}

onEachStore('The window that logged in, and posts many times at once', (technology) => {
  const h = suiteHarness({ technology })

  it('has one answer to 20 concurrent posts, whatever they ask for, and the others get neither code nor session (VER-20, VER-25)', async () => {
    for (const asked of [[{}], ASKED]) {
      const login = await h.blockedLogin()
      await login.opensElsewhere()
      const posts = Array.from({ length: 20 }, (_, at) => login.goesOn(asked[at % asked.length]))
      const answers = await Promise.all(posts)
      const [redirect, ...more] = answers.filter(({ location }) => location !== undefined)
      expect(more).to.deep.equal([])
      for (const answer of answers) {
        if (answer === redirect) continue
        expect(answer.mode).to.be.oneOf(['ended', 'signed_in'])
        expect(setsSession(answer)).to.equal(false)
      }
      if (asked !== ASKED) await login.comesBack(redirect)
      expect((await login.signsIn()).location).to.match(/[?&]code=/)
    }
  })
})

describe('A window that waits for a login that is over', () => {
  const h = suiteHarness()

  /** The page says so, nobody is signed in, and the turn is not taken. */
  async function expectOver(login: Person) {
    for (const { text } of await expectSays(login, 400, 'ended'))
      expect(text).to.match(/<a [^>]*href="https:\/\/app\.example\/"/)
    const foreign = await login.in().goesOn()
    expectMode(foreign, 400, 'ended')
    expect(foreign.text).not.to.include('The App')
    expect((await pendingOf(h, login)).continuedAt).to.equal(undefined)
    expect(h.sessionId(login.agent)).to.equal(undefined)
  }

  /** A login that begins now is as good as any. */
  async function expectNextLoginWorks(login: Person, password = PASSWORD) {
    expect((await login.signsIn(password)).location).to.include('code=')
    expect(await login.account()).to.equal(login.id)
  }

  it('goes nowhere once everything of the account was ended, be it verified before or not', async () => {
    for (const isVerifiedBefore of [false, true]) {
      const login = await h.blockedLogin()
      if (isVerifiedBefore) await login.opensElsewhere()
      await h.flows.endSessions(login.id)
      await expectOver(login)
      if (!isVerifiedBefore) expectMode(await login.opensElsewhere(), 400, 'expired')
      await login.becomes({ emailVerified: true })
      await expectOver(login)
      await expectNextLoginWorks(login)
    }
  })

  it('goes nowhere after a reset, nor does its link: who knew the old password stays out (VER-19, SES-14)', async () => {
    const login = await h.blockedLogin()
    const { link } = login
    await login.getsBackIn('a brand new password')
    await expectOver(login)
    expectExpired(await login.opensLink(link))
    await login.getsNothing()
    await login.asksAgain()
    expectMode(await login.opensElsewhere(), 200, 'verified')
    await expectOver(login)
    await expectNextLoginWorks(login, 'a brand new password')
  })

  it('goes nowhere under another address, be that verified or not, nor where the account is gone', async () => {
    for (const emailVerified of [false, true]) {
      const login = await h.blockedLogin()
      await login.becomes({ email: `another-${login.id}@users.example`, emailVerified })
      await expectOver(login)
      await login.becomes({ emailVerified: true })
      await expectNextLoginWorks(login)
    }
    const gone = await h.blockedLogin()
    await gone.opensElsewhere()
    await gone.isDeleted()
    await expectOver(gone)
  })

  it('waits again, and keeps its turn, where the address is taken for unverified again', async () => {
    const login = await h.blockedLogin()
    await login.opensElsewhere()
    await login.becomes({ emailVerified: false })
    expectMode(await login.goesOn(), 200, 'blocked')
    expect(h.sessionId(login.agent)).to.equal(undefined)
    await login.becomes({ emailVerified: true })
    await expectGoesOn(login)
  })
})

type Session = Awaited<ReturnType<Harness['sessionOf']>>

/** The session of one is now a session of the other, with nothing of the former. */
async function expectReplaced(h: Harness, before: Session, after: Session, users: Person[]) {
  const [owner, user] = users
  expect([before?.accountId, after?.accountId]).to.deep.equal([owner?.id, user?.id])
  expect(after?.jti).to.not.equal(before?.jti)
  expect(after?.uid === before?.uid, 'one uid for one account').to.equal(owner?.id === user?.id)
  expect(await h.provider.Session.find(before?.jti ?? '')).to.equal(undefined)
}

describe('A waiting window in a browser with a session', () => {
  const h = suiteHarness()

  it('goes on over the session of another account, by button, code and link: the password was typed in this very browser (VER-18)', async () => {
    for (const [mode, goOn] of [
      ['off', (login: Person) => login.opensElsewhere().then(() => login.goesOn())],
      ['off', (login: Person) => login.types()],
      ['other_browser', (login: Person) => login.opensLink()],
    ] as const) {
      await h.put({ email_link_confirmation: mode })
      const login = await h.blockedLogin()
      const owner = await h.addSignedIn(login.agent)
      const before = await h.sessionOf(login.agent)
      await login.comesBack(await goOn(login))
      await expectReplaced(h, before, await h.sessionOf(login.agent), [owner, login])
      expect(await login.account()).to.equal(login.id)
    }
    await h.put({ email_link_confirmation: 'off' })
  })

  async function endSession(agent: UserAgent, answer: { logout?: 'yes' }, headers = {}) {
    const { hidden } = await agent.get(`${h.oauthUrl}/session/end`, headers)
    const form = { ...hidden, ...answer }
    expect((await agent.post(`${h.oauthUrl}/session/end/confirm`, form)).status).to.equal(303)
  }

  /** Its link was opened elsewhere, and its person signed in here by another login. */
  async function signedInBeside() {
    const login = await h.blockedLogin()
    await login.opensElsewhere()
    await login.in(login.agent).signsIn()
    expect(await login.account()).to.equal(login.id)
    return login
  }

  it('goes on in no window once the person has signed out of the browser', async () => {
    const login = await signedInBeside()
    await endSession(login.agent, { logout: 'yes' })
    await expectSays(login, 400, 'ended')
    await expectSays(login, 400, 'ended')
    expect(await login.account()).to.equal(undefined)
    await expectGoesOnByLinkElsewhere(await h.blockedLogin({ agent: login.agent }))
  })

  it('goes on where the person was asked whether to sign out, and stayed; or where another site led the browser to that, and nobody was signed in', async () => {
    const stayed = await signedInBeside()
    await endSession(stayed.agent, {})
    expect(await stayed.account()).to.equal(stayed.id)
    const login = await h.blockedLogin()
    await login.opensElsewhere()
    await endSession(login.agent, { logout: 'yes' }, { 'sec-fetch-site': 'cross-site' })
    for (const each of [stayed, login]) await expectGoesOn(each)
  })

  it('says of a window that went on before that it is over, and nothing of the other account that came since', async () => {
    const login = await h.blockedLogin()
    await login.stillGetsIn()
    await (await h.sessionOf(login.agent))?.destroy()
    const owner = await h.addSignedIn(login.agent)
    for (const { text } of await expectSays(login, 400, 'ended'))
      expect(text).to.not.include(owner.username)
    expect(await login.account()).to.equal(owner.id)
  })

  it('keeps a session of the same account, under a new name', async () => {
    const user = await h.addVerified()
    await user.signsIn()
    const before = await h.sessionOf(user.agent)
    await user.becomes({ emailVerified: false })
    await expectGoesOnByLinkElsewhere(await h.blockedLogin({ user, agent: user.agent }))
    await expectReplaced(h, before, await h.sessionOf(user.agent), [user, user])
  })
})

describe('A login that waited in a browser where its account signed in again since', () => {
  let how: Partial<CheckedLogin> = {}
  const h = suiteHarness({
    finishLogin: (req, res, login) => h.flows.finishLogin(req, res, { ...login, ...how }),
  })
  const MAX_AGE_S = 600

  beforeEach(() => {
    how = {}
  })

  /** A login that waits, and after a while a stronger one, of the same account in the same browser. */
  async function overtaken(seconds: number, extra: Record<string, string>) {
    how = { acr: 'bronze', amr: ['pwd'], remember: false }
    const login = await h.blockedLogin({ extra: { max_age: String(MAX_AGE_S), ...extra } })
    await moveTime(seconds * 1000)
    await login.becomes({ emailVerified: true })
    how = { acr: 'gold', amr: ['pwd', 'otp'] }
    const { location } = await login.in(login.agent).signsIn(PASSWORD, { prompt: 'login' })
    expect(location).to.match(/[?&]code=/)
    const newer = await h.sessionOf(login.agent)
    expect(newer?.acr).to.equal('gold')
    await moveTime(2_000)
    return { login, newer }
  }

  for (const isByLink of [false, true]) {
    for (const [title, seconds, extra] of [
      ['after a minute', 60, {}],
      ['with prompt=login', 60, { prompt: 'login' }],
      ['once its own is older than max_age', MAX_AGE_S + 1, { prompt: 'login' }],
    ] as const) {
      it(`is finished by its ${isByLink ? 'link' : 'window'} with the newer login, which stays as it is, ${title} (SES-15)`, async () => {
        const { login, newer } = await overtaken(seconds, extra)
        if (isByLink) await login.becomes({ emailVerified: false })
        const answer = isByLink ? await login.opensLink() : await login.goesOn()
        const tokens = await login.comesBack(answer)
        expect(tokens.claims()?.auth_time).to.equal(newer?.loginTs)
        const after = await h.sessionOf(login.agent)
        const { accountId, loginTs, acr, amr, uid } = newer ?? {}
        expect(after).to.deep.include({ accountId, loginTs, acr, amr, uid })
        expect(after?.transient).to.equal(newer?.transient)
      })
    }
  }

  it('replaces a session from before that login', async () => {
    const user = await h.addVerified()
    how = { acr: 'gold' }
    await user.signsIn()
    const before = await h.sessionOf(user.agent)
    await moveTime(5_000)
    await user.becomes({ emailVerified: false })
    how = { acr: 'bronze' }
    const { agent } = user
    const login = await h.blockedLogin({ user, agent, extra: { prompt: 'login' } })
    await expectGoesOnByLinkElsewhere(login)
    const after = await h.sessionOf(agent)
    expect(after?.acr).to.equal('bronze')
    expect(after?.loginTs).to.be.greaterThan(before?.loginTs ?? Infinity)
  })
})

describe('The cookie by which the browser that logged in is known', () => {
  const NAME = 'account_flows_browser'
  const lineOf = ({ headers }: Answer) =>
    headers.getSetCookie().find((line) => line.includes(NAME)) ?? ''
  const valueOf = (line: string) => /=([\w-]{43});/.exec(line)?.[1]

  let remember: Pick<CheckedLogin, 'remember'> = {}
  const h = suiteHarness({
    finishLogin: (req, res, login) => h.flows.finishLogin(req, res, { ...login, ...remember }),
  })

  it('is for no script and no other site, lives as long as the login can wait, is stored hashed, stays the same for the browser, and is another one for each', async () => {
    const login = await h.blockedLogin()
    const line = lineOf(login.blocked)
    const value = valueOf(line)
    const eightDays = `Max-Age=${8 * 86_400}`
    expect(line).to.equal(`${NAME}=${value}; ${eightDays}; Path=/; HttpOnly; SameSite=Lax`)
    const stored = await pendingOf(h, login)
    expect(JSON.stringify(stored)).to.not.include(value)
    expect(stored.browserHash).to.match(/^[\da-f]{64}$/)
    expect(lineOf((await h.blockedLogin({ agent: login.agent })).blocked)).to.equal(line)
    const elsewhere = valueOf(lineOf((await h.blockedLogin()).blocked))
    expect(elsewhere)
      .to.match(/^[\w-]{43}$/)
      .and.not.equal(value)
  })

  it('is given to nobody who is not blocked, and not by a link', async () => {
    const login = await h.blockedLogin()
    const elsewhere = login.in()
    expect(lineOf(await (await h.addVerified()).signsIn())).to.equal('')
    expect(lineOf(await elsewhere.opensLink())).to.equal('')
    expect(elsewhere.agent.cookiesFor(h.oauthUrl)).to.not.include(NAME)
    await login.comesBack(await login.goesOn())
  })

  it('ends with the browser where the login is not to be remembered', async () => {
    remember = { remember: false }
    const login = await h.blockedLogin()
    remember = {}
    const line = lineOf(login.blocked)
    expect(line).to.equal(`${NAME}=${valueOf(line)}; Path=/; HttpOnly; SameSite=Lax`)
    await login.opensElsewhere()
    const answer = await login.goesOn()
    const session = answer.headers.getSetCookie().find((each) => each.startsWith('_session='))
    expect(session).to.not.match(/expires|max-age/i)
    await login.comesBack(answer)
  })

  it('of the person before gives the next person of a browser nothing', async () => {
    const before = await h.blockedLogin()
    const next = await h.blockedLogin({ agent: before.agent })
    await next.opensElsewhere()
    expectMode(await before.goesOn(), 200, 'blocked')
    await next.comesBack(await next.goesOn())
    expect(await before.isVerified()).to.equal(false)
  })

  it('is bound to this host over https', async () => {
    const secure = await startHarness({ flows: { baseUrl: 'https://idp.example' } })
    const line = lineOf(await (await secure.addUnverified()).signsIn())
    await secure.close()
    const attributes = 'Max-Age=691200; Path=/; HttpOnly; SameSite=Lax; Secure'
    expect(line).to.equal(`__Host-${NAME}=${valueOf(line)}; ${attributes}`)
  })
})
