import { expect } from 'chai'
import { withDeleted } from '../support/admin.ts'
import { expectExpired } from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { type Harness, PASSWORD } from '../support/harness.ts'
import { describeWithMongo, freshDatabase } from '../support/mongod.ts'
import { databaseOf, shapeOf } from '../support/observe.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { type Answer, createUserAgent } from '../support/user-agent.ts'
import {
  expectMode,
  openElsewhere,
  pendingOf,
  windowNamed,
  windowOf,
} from '../support/waiting-window.ts'
import {
  accountOf,
  addUnverified,
  blockedLogin,
  type Person,
  sessionId,
  setsSession,
} from '../support/person.ts'

describe('The page that waits goes on by its button', () => {
  const h = suiteHarness({ flows: { trustedProxies: 1 } })

  async function expectGoesOn(login: Person) {
    await login.comesBack(await login.goesOn())
    expect(await login.account()).to.equal(login.id)
  }

  it('goes on to the client, with its own state, nonce and PKCE, once the link was opened in another browser, which in mode off has a code as well (VER-15)', async () => {
    const login = await blockedLogin(h)
    const elsewhere = createUserAgent()
    const window = windowOf(h, login)
    await login.comesBack(await elsewhere.get(login.link))
    const answer = await window.goOn()
    expect(setsSession(answer)).to.equal(true)
    const tokens = await login.comesBack(answer)
    expect(tokens.claims()?.['nonce']).to.equal(login.request.nonce)
    for (const agent of [login.agent, elsewhere]) {
      expect(await accountOf(h, agent)).to.equal(login.id)
    }
  })

  it('goes nowhere before, says so, and keeps its turn', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    for (const _time of [1, 2, 3]) {
      const answer = await window.goOn()
      expectMode(answer, 200, 'blocked')
      await login.getsNothing(answer)
    }
    await login.opensElsewhere()
    await expectGoesOn(login)
  })

  it('shows the waiting page again after a reload, which consumes nothing', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    for (const isConfirmed of [false, true]) {
      if (isConfirmed) await login.opensElsewhere()
      const page = await window.reload()
      expectMode(page, 200, 'blocked')
      expect(page.hidden['login']).to.equal(window.id)
      expect(setsSession(page)).to.equal(false)
    }
    await expectGoesOn(login)
  })

  it('goes on once, whatever is posted after that', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await login.opensElsewhere()
    await expectGoesOn(login)
    for (const ask of [window.goOn, window.reload]) expectMode(await ask(), 200, 'signed_in')
  })

  it('leaves its turn to the link where that is opened in the same browser, and says that one is signed in', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await login.comesBack(await login.agent.get(login.link))
    for (const answer of [await window.goOn(), await window.reload()]) {
      expectMode(answer, 200, 'signed_in')
      expect(setsSession(answer)).to.equal(false)
    }
  })

  it('says that it is over, not that one is signed in, once the session is gone again', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await login.comesBack(await login.agent.get(login.link))
    const session = await h.provider.Session.find(sessionId(h, login.agent) ?? '')
    await session?.destroy()
    expectMode(await window.goOn(), 400, 'ended')
    expectMode(await window.reload(), 400, 'ended')
  })

  it('goes on with the button once require_email_verification is false', async () => {
    const login = await blockedLogin(h)
    await h.put({ require_email_verification: 'false' })
    const answer = await login.goesOn()
    await h.put({ require_email_verification: 'true' })
    const tokens = await login.party.exchange(login.request, answer.location ?? '')
    expect(tokens.claims()?.sub).to.equal(login.id)
    expect(await login.isVerified()).to.equal(false)
  })

  it('has gone on before the link is opened in the same browser: that verifies, and makes no second code', async () => {
    for (const isSignedIn of [true, false]) {
      const login = await blockedLogin(h)
      await h.put({ require_email_verification: 'false' })
      const { location = '' } = await login.goesOn()
      await login.party.exchange(login.request, location)
      const session = sessionId(h, login.agent)
      if (!isSignedIn) await (await h.provider.Session.find(session ?? ''))?.destroy()
      const answer = await login.agent.get(login.link)
      expectMode(answer, 200, 'verified')
      expect(setsSession(answer)).to.equal(false)
      expect(await login.isVerified()).to.equal(true)
      expectExpired(await login.agent.get(login.link))
      await h.put({ require_email_verification: 'true' })
    }
  })

  it('learns that somebody else verified the account: support, an import, or a process that died then', async () => {
    for (const verify of [
      ({ id, email = '' }: Person) => h.users.markEmailVerified(id, email),
      (user: Person) => user.becomes({ emailVerified: true }),
    ]) {
      const login = await blockedLogin(h)
      const window = windowOf(h, login)
      await verify(login)
      expectMode(await window.in(createUserAgent()).reloads(), 400, 'ended')
      await expectGoesOn(login)
      expectMode(await createUserAgent().get(login.link), 200, 'verified')
    }
  })

  it('goes on with each login of the account where the host verified the address, each with its own request', async () => {
    const agent = createUserAgent()
    const user = await addUnverified(h)
    const first = await blockedLogin(h, { agent, user })
    const second = await blockedLogin(h, { agent, user })
    expect(first.loginId()).to.not.equal(second.loginId())
    await user.becomes({ emailVerified: true })
    for (const login of [second, first]) await expectGoesOn(login)
  })

  it('is over once another login of the account verified the address, by its link or its code', async () => {
    for (const verify of [
      (login: Person) => login.agent.get(login.link),
      (login: Person) => login.opensElsewhere(),
      (login: Person) => login.types(login.code),
    ]) {
      const left = await blockedLogin(h)
      const login = await blockedLogin(h, { user: left })
      await login.comesBack(await verify(login))
      expectMode(await left.goesOn(), 400, 'ended')
      expectMode(await left.reloads(), 400, 'ended')
      expect(sessionId(h, left.agent)).to.equal(undefined)
    }
  })

  it('is over while another login of the account verifies the address, and so is one that begins in that moment', async () => {
    const left = await blockedLogin(h)
    const { user } = left
    const login = await blockedLogin(h, { user })
    const { markEmailVerified } = h.users
    const begun: Person[] = []
    h.users.markEmailVerified = async (id, email) => {
      h.users.markEmailVerified = markEmailVerified
      begun.push(await blockedLogin(h, { user }))
      const isFirst = await markEmailVerified(id, email)
      expectMode(await left.goesOn(), 400, 'ended')
      return isFirst
    }
    await login.comesBack(await login.types(login.code))
    expect(begun).to.have.length(1)
    for (const each of begun) expectMode(await each.goesOn(), 400, 'ended')
  })

  it('waits as long as the latest link works, and ends alike for everybody', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await moveTime(24 * 3_600_000)
    const nobody = windowNamed(h.oauthUrl, 'nobody', login.agent)
    for (const ask of ['reload', 'goOn'] as const) {
      expect(shapeOf(await window[ask]())).to.deep.equal(shapeOf(await nobody[ask]()))
    }
    expectMode(await window.reload(), 400, 'ended')
    expectExpired(await createUserAgent().get(login.link))
    const { login: _, ...form } = login.blocked.hidden
    const link = await login.asksAgain(form)
    await openElsewhere({ ...login, link })
    await expectGoesOn(login)
  })

  it('is counted by network like every form', async () => {
    const login = await blockedLogin(h)
    await h.put({ requests_per_ip_per_minute: '2' })
    const from = { 'x-forwarded-for': '192.0.2.1' }
    const window = windowOf(h, login)
    for (const _time of [1, 2]) expectMode(await window.goOn({}, from), 200, 'blocked')
    expect((await window.goOn({ code: login.code }, from)).status).to.equal(429)
    expect(await login.isVerified()).to.equal(false)
    await h.put({ requests_per_ip_per_minute: '60' })
    await login.comesBack(await window.goOn({ code: login.code }, from))
  })

  it('leads to its client from every page that it is on, however long the request of the client is', async () => {
    const login = await blockedLogin(h, { extra: { state: 's'.repeat(4_100) } })
    expect(login.link).to.not.include('state=')
    const form = { username: login.username, ...login.blocked.hidden }
    const ask = (more = {}) =>
      login.agent.post(`${h.oauthUrl}/resend-verification`, { ...form, ...more })
    const policyOf = ({ headers }: Answer) => headers.get('content-security-policy')
    const sent = await ask()
    expect(sent.mode).to.equal('sent')
    for (const page of [login.blocked, sent]) {
      expect(policyOf(page)).to.include("form-action 'self' https:;")
    }
    const other = await ask({ redirect_uri: 'com.evil.app:/cb' })
    expect(policyOf(other)).to.include("form-action 'self';")
    await login.opensElsewhere()
    await login.comesBack(await login.goesOn())
  })

  describe('to others it tells and gives nothing:', () => {
    let login: Person

    beforeEach(async () => {
      login = await blockedLogin(h)
    })

    it('a browser without the cookie, a foreign one, and an id of nobody look alike, byte for byte (VER-21)', async () => {
      const own = windowOf(h, login)
      const other = await blockedLogin(h)
      const expired = { ...(await pendingOf(h, own)), id: `${own.id.slice(1)}x` }
      await h.store.pendingLogins.save({ ...expired, purgeAt: new Date(Date.now() - 1) }, 2)
      const windows = [
        own.in(createUserAgent()),
        own.in(other.agent),
        windowNamed(h.oauthUrl, 'nobody', login.agent),
        windowNamed(h.oauthUrl, '', login.agent),
        windowNamed(h.oauthUrl, expired.id, login.agent),
      ]
      for (const isConfirmed of [false, true]) {
        if (isConfirmed) await login.opensElsewhere()
        const answers = await Promise.all(
          windows.map(async (window) => ({
            page: shapeOf(await window.reload()),
            post: shapeOf(await window.goOn()),
          })),
        )
        expect([answers[0]?.page.status, answers[0]?.post.status]).to.deep.equal([400, 400])
        expect(answers[0]?.page.text).to.include('data-mode="ended"')
        for (const answer of answers) expect(answer).to.deep.equal(answers[0])
      }
      await expectGoesOn(login)
    })

    it('a parameter that is repeated or bracketed names no login', async () => {
      const { id, agent } = windowOf(h, login)
      await login.opensElsewhere()
      const url = `${h.oauthUrl}/verify-email`
      for (const query of [`login=${id}&login=${id}`, `login[]=${id}`, `login[$gt]=`, '']) {
        expectMode(await agent.get(`${url}/waiting?${query}`), 400, 'ended')
      }
      for (const form of [`login=${id}&login=${id}`, `login[]=${id}`, 'login[$gt]=', '']) {
        const answer = await agent.post(`${url}/waiting`, form)
        expect([answer.status, answer.location]).to.deep.equal([400, undefined])
        expect(setsSession(answer)).to.equal(false)
      }
      await expectGoesOn(login)
    })

    it('the id alone, the cookie alone, and a cookie that somebody made up are good for nothing (VER-17)', async () => {
      const window = windowOf(h, login)
      await login.opensElsewhere()
      const thief = createUserAgent()
      expectMode(await window.in(thief).goesOn(), 400, 'ended')
      const cookie = login.agent.cookiesFor(`${h.oauthUrl}/verify-email`)
      for (const id of ['', 'x', login.id, login.interaction]) {
        const stolen = windowNamed(h.oauthUrl, id, thief)
        expectMode(await stolen.goOn({}, { cookie }), 400, 'ended')
      }
      for (const value of ['', 'x', '%00', 'A'.repeat(43), 'A'.repeat(44), '{"$gt":""}']) {
        const made = { cookie: `account_flows_browser=${value}` }
        expectMode(await window.in(thief).goesOn({}, made), 400, 'ended')
      }
      expect(sessionId(h, thief)).to.equal(undefined)
      await expectGoesOn(login)
    })

    it('a form of another site', async () => {
      const window = windowOf(h, login)
      await login.opensElsewhere()
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: 'null', 'sec-fetch-site': 'cross-site' },
      ]) {
        const answer = await window.goOn({}, headers)
        expect([answer.status, answer.mode]).to.deep.equal([403, 'refused'])
        expect(answer.location).to.equal(undefined)
        expect(sessionId(h, login.agent)).to.equal(undefined)
      }
      const own = { origin: 'null', 'sec-fetch-site': 'same-origin' }
      await login.comesBack(await window.goOn({}, own))
    })

    it('the address bar and other methods make nothing go on', async () => {
      const window = windowOf(h, login)
      await login.opensElsewhere()
      const url = `${h.oauthUrl}/verify-email/waiting?login=${window.id}`
      for (const method of ['HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        const answer = await login.agent.request(method, url)
        expect(answer.location).to.equal(undefined)
        expect(setsSession(answer)).to.equal(false)
      }
      await expectGoesOn(login)
    })

    it('is kept in no cache', async () => {
      for (const answer of [await login.reloads(), login.blocked])
        expect(answer.headers.get('cache-control')).to.equal('no-store')
    })
  })
})

onBothStores('The window that logged in, and posts many times at once', (technology) => {
  const h = suiteHarness({ technology })

  it('goes on in one of 20 concurrent posts, and the others get neither code nor session (VER-20)', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await login.opensElsewhere()
    const answers = await Promise.all(Array.from({ length: 20 }, () => window.goOn()))
    const redirects = answers.filter(({ location }) => location !== undefined)
    expect(redirects).to.have.length(1)
    expect(answers.filter(setsSession)).to.deep.equal(redirects)
    for (const { location, mode } of answers) {
      if (location === undefined) expect(mode).to.be.oneOf(['ended', 'signed_in'])
    }
    for (const answer of redirects) await login.comesBack(answer)
  })
})

describe('A window that waits for a login that is over', () => {
  const deleted = new Set<string>()
  const h: Harness = suiteHarness({ flows: { users: withDeleted(() => h.users, deleted) } })

  /** The page says so, nobody is signed in, and the turn is not taken. */
  async function expectOver(login: Person) {
    const window = windowOf(h, login)
    for (const ask of [window.goOn, window.reload]) {
      const answer = await ask()
      expectMode(answer, 400, 'ended')
      expect(answer.text).to.match(/<a [^>]*href="https:\/\/app\.example\/"/)
    }
    const foreign = await window.in(createUserAgent()).goesOn()
    expectMode(foreign, 400, 'ended')
    expect(foreign.text).not.to.include('The App')
    expect((await pendingOf(h, window)).continuedAt).to.equal(undefined)
    expect(sessionId(h, login.agent)).to.equal(undefined)
  }

  /** A login that begins now is as good as any. */
  async function expectNextLoginWorks({ user, agent }: Person, password = PASSWORD) {
    expect((await h.signIn(agent, user.username, password)).location).to.include('code=')
    expect(await accountOf(h, agent)).to.equal(user.id)
  }

  it('goes nowhere once everything of the account was ended, be it verified before or not', async () => {
    for (const isVerifiedBefore of [false, true]) {
      const login = await blockedLogin(h)
      if (isVerifiedBefore) await login.opensElsewhere()
      await h.flows.endSessions(login.id)
      await expectOver(login)
      if (!isVerifiedBefore) expectMode(await login.opensElsewhere(), 400, 'expired')
      await login.becomes({ emailVerified: true })
      await expectOver(login)
      await expectNextLoginWorks(login)
    }
  })

  it('goes nowhere after a reset: who knew the old password stays out (VER-19)', async () => {
    const login = await blockedLogin(h)
    const reset = await h.reset(await login.forgets(), 'a brand new password')
    expect(reset.mode).to.equal('done')
    await expectOver(login)
    const fresh = await createUserAgent().get(await login.asksAgain())
    expectMode(fresh, 200, 'verified')
    await expectOver(login)
    await expectNextLoginWorks(login, 'a brand new password')
  })

  it('goes nowhere under another address, be that verified or not', async () => {
    for (const emailVerified of [false, true]) {
      const login = await blockedLogin(h)
      const email = `another-${login.id}@users.example`
      await login.becomes({ email, emailVerified })
      await expectOver(login)
      await login.becomes({ emailVerified: true })
      await expectNextLoginWorks(login)
    }
  })

  it('waits again, and keeps its turn, where the address is taken for unverified again', async () => {
    const login = await blockedLogin(h)
    const window = windowOf(h, login)
    await login.opensElsewhere()
    await login.becomes({ emailVerified: false })
    expectMode(await window.goOn(), 200, 'blocked')
    expect(sessionId(h, login.agent)).to.equal(undefined)
    await login.becomes({ emailVerified: true })
    await login.comesBack(await window.goOn())
  })

  it('goes nowhere where the account is gone', async () => {
    const login = await blockedLogin(h)
    await login.opensElsewhere()
    deleted.add(login.id)
    await expectOver(login)
  })
})

describeWithMongo('The page that waits [full]', () => {
  const h = suiteHarness(async () => ({ database: await freshDatabase('standalone') }))

  it('goes nowhere once the record is damaged or gone, and a new login works', async () => {
    const login = await blockedLogin(h)
    await login.opensElsewhere()
    const window = windowOf(h, login)
    const logins = databaseOf(h).collection<{ _id: string }>('pending_logins')
    const texts = [{ captured: '{}' }, { captured: 'no JSON' }]
    for (const damage of [...texts, { purge_at: 'never' }, { browser_hash: 7 }]) {
      const before = await logins.findOneAndUpdate({ _id: window.id }, { $set: damage })
      expectMode(await window.goOn(), 400, 'ended')
      await logins.replaceOne({ _id: window.id }, before ?? {})
    }
    await logins.deleteOne({ _id: window.id })
    expectMode(await window.goOn(), 400, 'ended')
    expect((await h.signIn(login.agent, login.username)).location).to.include('code=')
  })
})
