import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import {
  accountOf,
  addUnverified,
  blockedLogin,
  changeUser,
  expectExpired,
  expectNothingChanged,
  expectResumed,
  isVerified,
  resend,
  sessionId,
  setsSession,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { startHarness, type Harness } from '../support/harness.ts'
import { shapeOf } from '../support/observe.ts'
import { createUserAgent } from '../support/user-agent.ts'
import {
  expectMode,
  openElsewhere,
  pendingOf,
  windowNamed,
  windowOf,
} from '../support/waiting-window.ts'

onBothStores('The window that logged in goes on by itself (D15)', (technology) => {
  let harness: Harness

  before(async () => {
    harness = await startHarness({ technology })
  })
  after(() => harness.close())

  async function expectGoesOn(login: BlockedLogin) {
    await expectResumed(harness, login, await windowOf(harness, login).goOn())
    expect(await accountOf(harness, login.agent)).to.equal(login.user.id)
  }

  it('goes on to the client, with its own state, nonce and PKCE, once the link was opened in another browser (VER-15)', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    expect(await window.status()).to.equal('waiting')
    await openElsewhere(login)
    expect(await window.status()).to.equal('verified')
    const answer = await window.goOn()
    expect(setsSession(answer)).to.equal(true)
    const tokens = await expectResumed(harness, login, answer)
    expect(tokens.claims()?.['nonce']).to.equal(login.request.nonce)
    expect(await accountOf(harness, login.agent)).to.equal(login.user.id)
    expect(await window.status()).to.equal('continued')
  })

  it('has a code of its own: in mode off the link gives the other browser one as well', async () => {
    const login = await blockedLogin(harness)
    const elsewhere = createUserAgent()
    await expectResumed(harness, login, await elsewhere.get(login.link))
    await expectGoesOn(login)
    expect(await accountOf(harness, elsewhere)).to.equal(login.user.id)
  })

  it('goes nowhere before, says so, and keeps its turn', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    for (const _time of [1, 2, 3]) {
      const answer = await window.goOn()
      expectMode(answer, 200, 'blocked')
      await expectNothingChanged(harness, login, answer)
    }
    await openElsewhere(login)
    await expectGoesOn(login)
  })

  it('shows the waiting page again after a reload, which consumes nothing', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    for (const isConfirmed of [false, true]) {
      if (isConfirmed) await openElsewhere(login)
      const page = await window.reload()
      expectMode(page, 200, 'blocked')
      expect(page.hidden['login']).to.equal(window.id)
      expect(setsSession(page)).to.equal(false)
    }
    expect(await window.status()).to.equal('verified')
    await expectGoesOn(login)
  })

  it('goes on once, whatever is posted after that', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    await openElsewhere(login)
    await expectGoesOn(login)
    for (const again of [() => window.goOn(), () => window.reload()]) {
      expectMode(await again(), 200, 'signed_in')
    }
    expect(await window.status()).to.equal('continued')
  })

  it('goes on in one of 20 concurrent posts, and the others get neither code nor session (VER-20)', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    await openElsewhere(login)
    const answers = await Promise.all(Array.from({ length: 20 }, () => window.goOn()))
    const redirects = answers.filter(({ location }) => location !== undefined)
    expect(redirects).to.have.length(1)
    expect(answers.filter(setsSession)).to.deep.equal(redirects)
    for (const { location, mode } of answers) {
      if (location === undefined) expect(mode).to.be.oneOf(['continued', 'signed_in'])
    }
    for (const answer of redirects) await expectResumed(harness, login, answer)
  })

  it('leaves its turn to the link where that is opened in the same browser, and says that one is signed in', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    await expectResumed(harness, login, await login.agent.get(login.link))
    expect(await window.status()).to.equal('continued')
    for (const answer of [await window.goOn(), await window.reload()]) {
      expectMode(answer, 200, 'signed_in')
      expect(setsSession(answer)).to.equal(false)
    }
  })

  it('says that it went on already, not that one is signed in, once the session is gone again', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    await expectResumed(harness, login, await login.agent.get(login.link))
    const session = await harness.provider.Session.find(sessionId(harness, login.agent) ?? '')
    await session?.destroy()
    expectMode(await window.goOn(), 400, 'continued')
    expectMode(await window.reload(), 400, 'continued')
  })

  it('goes on with the button where an admin verified the account', async () => {
    const login = await blockedLogin(harness)
    await changeUser(harness, login.user, { emailVerified: true })
    await expectGoesOn(login)
  })

  it('goes on with the button once require_email_verification is false', async () => {
    const login = await blockedLogin(harness)
    await harness.put({ require_email_verification: 'false' })
    const answer = await windowOf(harness, login).goOn()
    await harness.put({ require_email_verification: 'true' })
    const tokens = await login.party.exchange(login.request, answer.location ?? '')
    expect(tokens.claims()?.sub).to.equal(login.user.id)
    expect(await isVerified(harness, login.user)).to.equal(false)
  })

  it('has gone on before the link is opened in the same browser: that verifies, and makes no second code', async () => {
    await harness.put({ require_email_verification: 'false' })
    const logins = [await blockedBefore(), await blockedBefore()]
    for (const [at, login] of logins.entries()) {
      const { location = '' } = await windowOf(harness, login).goOn()
      await login.party.exchange(login.request, location)
      const session = sessionId(harness, login.agent)
      if (at > 0) await (await harness.provider.Session.find(session ?? ''))?.destroy()
      const answer = await login.agent.get(login.link)
      expectMode(answer, 200, at > 0 ? 'verified' : 'signed_in')
      expect(setsSession(answer)).to.equal(false)
      expect(await isVerified(harness, login.user)).to.equal(true)
      expectExpired(await login.agent.get(login.link))
    }
    await harness.put({ require_email_verification: 'true' })
  })

  async function blockedBefore() {
    await harness.put({ require_email_verification: 'true' })
    const login = await blockedLogin(harness)
    await harness.put({ require_email_verification: 'false' })
    return login
  }

  it('goes on with the button though the process died before the window was told (D5)', async () => {
    const login = await blockedLogin(harness)
    const window = windowOf(harness, login)
    const { id, email = '' } = login.user
    expect(await harness.users.markEmailVerified(id, email)).to.equal(true)
    expect(await window.status()).to.equal('waiting')
    await expectGoesOn(login)
    expectMode(await createUserAgent().get(login.link), 200, 'verified')
  })

  it('goes on with each of two logins of one browser, each with its own request', async () => {
    const agent = createUserAgent()
    const user = await addUnverified(harness)
    const first = await blockedLogin(harness, { agent, user })
    const second = await blockedLogin(harness, { agent, user })
    expect(windowOf(harness, first).id).to.not.equal(windowOf(harness, second).id)
    await openElsewhere(first)
    for (const login of [second, first]) await expectGoesOn(login)
  })

  it('goes on after a link that was asked for anew', async () => {
    const login = await blockedLogin(harness)
    const before = harness.mail.mails.filter(({ to }) => to.includes(login.user.email ?? ''))
    const { username, ...carried } = login.blocked.hidden
    await createUserAgent().post(`${harness.oauthUrl}/resend-verification`, {
      username: username ?? '',
      ...carried,
    })
    const { link } = await harness.mail.mailTo(login.user.email ?? '', before.length + 1)
    await openElsewhere({ ...login, link })
    await expectGoesOn(login)
    expectExpired(await createUserAgent().get(login.link))
  })

  it('waits as long as the latest link works, and ends alike for everybody', async () => {
    await harness.put({ email_verification_expiration: '1s' })
    const login = await blockedLogin(harness)
    await harness.put({ email_verification_expiration: '24h' })
    const window = windowOf(harness, login)
    await sleep(1_100)
    const nobody = windowNamed(harness.oauthUrl, 'nobody', login.agent)
    for (const ask of ['poll', 'reload', 'goOn'] as const) {
      expect(shapeOf(await window[ask]())).to.deep.equal(shapeOf(await nobody[ask]()))
    }
    expect(await window.status()).to.equal('ended')
    expectExpired(await createUserAgent().get(login.link))
    const { login: _, ...form } = login.blocked.hidden
    const link = await resend(harness, login.user, form)
    expect(await window.status()).to.equal('waiting')
    await openElsewhere({ ...login, link })
    await expectGoesOn(login)
  })

  describe('to others it tells and gives nothing:', () => {
    let login: BlockedLogin

    beforeEach(async () => {
      login = await blockedLogin(harness)
    })

    it('a browser without the cookie, a foreign one, and an id of nobody look alike, byte for byte (VER-21)', async () => {
      const own = windowOf(harness, login)
      const other = await blockedLogin(harness)
      const expired = { ...(await pendingOf(harness, own)), id: `${own.id.slice(1)}x` }
      await harness.store.pendingLogins.save({ ...expired, purgeAt: new Date(Date.now() - 1) })
      const windows = [
        own.in(createUserAgent()),
        own.in(other.agent),
        windowNamed(harness.oauthUrl, 'nobody', login.agent),
        windowNamed(harness.oauthUrl, '', login.agent),
        windowNamed(harness.oauthUrl, expired.id, login.agent),
      ]
      for (const isConfirmed of [false, true]) {
        if (isConfirmed) await openElsewhere(login)
        const answers = await Promise.all(
          windows.map(async (window) => ({
            status: shapeOf(await window.poll()),
            page: shapeOf(await window.reload()),
            post: shapeOf(await window.goOn()),
          })),
        )
        expect(answers[0]?.status.text).to.equal('{"status":"ended"}')
        expect([answers[0]?.page.status, answers[0]?.post.status]).to.deep.equal([400, 400])
        expect(answers[0]?.page.text).to.include('data-mode="ended"')
        for (const answer of answers) expect(answer).to.deep.equal(answers[0])
      }
      await expectGoesOn(login)
    })

    it('a parameter that is repeated or bracketed names no login', async () => {
      const { id, agent } = windowOf(harness, login)
      await openElsewhere(login)
      const url = `${harness.oauthUrl}/verify-email`
      for (const query of [`login=${id}&login=${id}`, `login[]=${id}`, `login[$gt]=`, '']) {
        expect((await agent.get(`${url}/status?${query}`)).text).to.equal('{"status":"ended"}')
        expectMode(await agent.get(`${url}/waiting?${query}`), 400, 'ended')
      }
      for (const form of [`login=${id}&login=${id}`, `login[]=${id}`, 'login[$gt]=', '']) {
        const answer = await agent.post(`${url}/waiting`, form)
        expect([answer.status, answer.location]).to.deep.equal([400, undefined])
        expect(setsSession(answer)).to.equal(false)
      }
      await expectGoesOn(login)
    })

    it('the id alone, and the cookie alone, are good for nothing (VER-17)', async () => {
      const window = windowOf(harness, login)
      await openElsewhere(login)
      const thief = createUserAgent()
      expectMode(await window.in(thief).goOn(), 400, 'ended')
      const cookie = login.agent.cookiesFor(`${harness.oauthUrl}/verify-email`)
      for (const id of ['', 'x', login.user.id, login.interaction]) {
        const stolen = windowNamed(harness.oauthUrl, id, thief)
        expectMode(await stolen.goOn({}, { cookie }), 400, 'ended')
      }
      expect(sessionId(harness, thief)).to.equal(undefined)
      await expectGoesOn(login)
    })

    it('a cookie of another form is none', async () => {
      const window = windowOf(harness, login).in(createUserAgent())
      await openElsewhere(login)
      for (const value of ['', 'x', '%00', 'A'.repeat(43), 'A'.repeat(44), '{"$gt":""}']) {
        const answer = await window.goOn({}, { cookie: `account_flows_browser=${value}` })
        expectMode(answer, 400, 'ended')
      }
      await expectGoesOn(login)
    })

    it('a form of another site (D31)', async () => {
      const window = windowOf(harness, login)
      await openElsewhere(login)
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
        expect(sessionId(harness, login.agent)).to.equal(undefined)
      }
      const own = { origin: 'null', 'sec-fetch-site': 'same-origin' }
      await expectResumed(harness, login, await window.goOn({}, own))
    })

    it('the address bar and other methods make nothing go on', async () => {
      const window = windowOf(harness, login)
      await openElsewhere(login)
      const url = `${harness.oauthUrl}/verify-email/waiting?login=${window.id}`
      for (const method of ['HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
        const answer = await login.agent.request(method, url)
        expect(answer.location).to.equal(undefined)
        expect(setsSession(answer)).to.equal(false)
      }
      expect(await window.status()).to.equal('verified')
      await expectGoesOn(login)
    })

    it('is kept in no cache, and says nothing of the account', async () => {
      const window = windowOf(harness, login)
      for (const answer of [await window.poll(), await window.reload(), login.blocked]) {
        expect(answer.headers.get('cache-control')).to.equal('no-store')
      }
      const { headers, text } = await window.poll()
      expect(text).to.equal('{"status":"waiting"}')
      expect(headers.get('content-type')).to.match(/^application\/json/)
      expect(headers.get('x-content-type-options')).to.equal('nosniff')
      expect(headers.get('set-cookie')).to.equal(null)
      expect(headers.get('access-control-allow-origin')).to.equal(null)
    })
  })
})
