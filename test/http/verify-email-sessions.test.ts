import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  changeUser,
  expectExpired,
  expectResumed,
  isVerified,
  resend,
  sessionId,
  setsSession,
  silently,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { CONFIDENTIAL, startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'

onBothStores('A verification link in a browser with a session (4.6)', (technology) => {
  let harness: Harness

  before(async () => {
    harness = await startHarness({ technology })
  })
  after(() => harness.close())

  const sessionOf = (agent: UserAgent) =>
    harness.provider.Session.find(sessionId(harness, agent) ?? '')

  const answerTo = (page: Answer, action: string, headers = {}) =>
    [`${harness.oauthUrl}/verify-email`, { ...page.hidden, action }, headers] as const

  async function signedIn(): Promise<{ owner: User; browser: UserAgent }> {
    const owner = await addVerified(harness)
    const browser = createUserAgent()
    const back = await harness.signIn(browser, owner.username)
    expect(back.location).to.match(/[?&]code=/)
    return { owner, browser }
  }

  function expectQuestion(page: Answer, users: User[]) {
    expect([page.status, page.page]).to.deep.equal([200, 'verify-email'])
    expect(page.mode).to.equal('other_account')
    expect(setsSession(page)).to.equal(false)
    for (const { username, email, id } of users) {
      expect(page.text).to.not.include(username)
      expect(page.text).to.not.include(email ?? '')
      expect(page.text).to.not.include(`"${id}"`)
    }
  }

  describe('of another account', () => {
    let login: BlockedLogin
    let owner: User
    let browser: UserAgent
    let page: Answer

    beforeEach(async () => {
      login = await blockedLogin(harness)
      ;({ owner, browser } = await signedIn())
      page = await browser.get(login.link)
    })

    async function expectUntouched(answer: Answer, session: string | undefined) {
      expect(answer.location).to.equal(undefined)
      expect(setsSession(answer)).to.equal(false)
      expect(sessionId(harness, browser)).to.equal(session)
      expect(await isVerified(harness, login.user)).to.equal(false)
    }

    it('asks first, names neither account, and consumes nothing', async () => {
      const session = sessionId(harness, browser)
      for (const _time of [1, 2, 3]) {
        const again = await browser.get(login.link)
        expectQuestion(again, [owner, login.user])
        await expectUntouched(again, session)
      }
      expect(await accountOf(harness, browser)).to.equal(owner.id)
      await expectResumed(harness, login, await login.agent.get(login.link))
    })

    it('replaces the session after "continue", and answers 302', async () => {
      const before = await sessionOf(browser)
      const answer = await browser.post(...answerTo(page, 'continue'))
      await expectResumed(harness, login, answer)
      const after = await sessionOf(browser)
      expect([before?.accountId, after?.accountId]).to.deep.equal([owner.id, login.user.id])
      expect(after?.jti).to.not.equal(before?.jti)
      expect(after?.uid).to.not.equal(before?.uid)
      expect(Object.keys(after?.authorizations ?? {})).to.deep.equal(['app'])
      expect(await harness.provider.Session.find(before?.jti ?? '')).to.equal(undefined)
      expect(await accountOf(harness, browser)).to.equal(login.user.id)
      expectExpired(await createUserAgent().get(login.link))
    })

    it('verifies and leaves the session after "only confirm"', async () => {
      const before = sessionId(harness, browser)
      const answer = await browser.post(...answerTo(page, 'confirm_only'))
      expect([answer.status, answer.mode]).to.deep.equal([200, 'verified'])
      expect([answer.location, setsSession(answer)]).to.deep.equal([undefined, false])
      expect(sessionId(harness, browser)).to.equal(before)
      expect(await isVerified(harness, login.user)).to.equal(true)
      expect(await accountOf(harness, browser)).to.equal(owner.id)
      expectExpired(await createUserAgent().get(login.link))
    })

    it('refuses an answer posted by another site', async () => {
      const session = sessionId(harness, browser)
      for (const headers of [
        { 'sec-fetch-site': 'cross-site' },
        { 'sec-fetch-site': 'same-site' },
        { origin: 'https://evil.example' },
        { origin: 'null' },
        { origin: 'null', 'sec-fetch-site': 'cross-site' },
      ]) {
        const answer = await browser.post(...answerTo(page, 'continue', headers))
        expect([answer.status, answer.mode]).to.deep.equal([403, 'refused'])
        await expectUntouched(answer, session)
      }
      const own = { origin: 'null', 'sec-fetch-site': 'same-origin' }
      await expectResumed(harness, login, await browser.post(...answerTo(page, 'continue', own)))
    })

    it('refuses an answer that is none, or whose link was changed', async () => {
      const session = sessionId(harness, browser)
      const url = `${harness.oauthUrl}/verify-email`
      const { state, ...stateless } = page.hidden
      const unknown = await browser.post(...answerTo(page, 'delete'))
      expect([unknown.status, unknown.page]).to.deep.equal([400, 'error'])
      await expectUntouched(unknown, session)
      const twice = new URLSearchParams({ ...page.hidden, action: 'continue' })
      twice.append('state', state ?? '')
      for (const [form, status] of [
        [{ ...page.hidden }, 400],
        [{ action: 'continue' }, 400],
        [{ ...stateless, action: 'continue' }, 400],
        [{ ...page.hidden, state: 'evil', action: 'continue' }, 400],
        [{ ...page.hidden, redirect_uri: 'https://evil.example', action: 'continue' }, 400],
        [{ ...page.hidden, token: 'A'.repeat(43), action: 'confirm_only' }, 400],
        [twice.toString(), 400],
      ] as const) {
        const answer = await browser.post(url, form)
        expect(answer.status).to.equal(status)
        await expectUntouched(answer, session)
      }
      const json = await browser.post(url, JSON.stringify(page.hidden), {
        'content-type': 'application/json',
      })
      expect(json.status).to.equal(415)
      await expectUntouched(json, session)
      await expectResumed(harness, login, await browser.post(...answerTo(page, 'continue')))
    })

    it('lets the page’s form lead to the client and nowhere else', async () => {
      const policy = page.headers.get('content-security-policy') ?? ''
      expect(policy).to.include("form-action 'self' https:;")
      const answer = await browser.get(login.link.replace('app.example', 'evil.example'))
      expect(answer.headers.get('content-security-policy')).to.not.include('evil')
    })

    it('does nothing once the link was used elsewhere between question and answer', async () => {
      await expectResumed(harness, login, await login.agent.get(login.link))
      const session = sessionId(harness, browser)
      for (const action of ['continue', 'confirm_only']) {
        expectExpired(await browser.post(...answerTo(page, action)))
      }
      expect(sessionId(harness, browser)).to.equal(session)
      expect(await accountOf(harness, browser)).to.equal(owner.id)
    })

    it('ends the other session only when the link does sign in', async () => {
      await changeUser(harness, login.user, { disabled: true })
      expectExpired(await browser.post(...answerTo(page, 'continue')))
      expect(await accountOf(harness, browser)).to.equal(owner.id)
      await changeUser(harness, login.user, { disabled: false })
      await expectResumed(harness, login, await browser.post(...answerTo(page, 'continue')))
    })
  })

  it('asks first for a link that no login waits for, too', async () => {
    const { owner, browser } = await signedIn()
    const user = await addUnverified(harness)
    const [uri] = CONFIDENTIAL.redirect_uris
    const carried = { client_id: CONFIDENTIAL.client_id, redirect_uri: uri, scope: 'openid' }
    const page = await browser.get(await resend(harness, user, carried))
    expectQuestion(page, [owner, user])
    const old = await sessionOf(browser)
    const answer = await browser.post(...answerTo(page, 'continue'))
    expect(answer.status).to.equal(302)
    expect(answer.location).to.match(/^https:\/\/server\.example\/cb\?code=/)
    const fresh = await sessionOf(browser)
    expect(fresh?.accountId).to.equal(user.id)
    expect(fresh?.jti).to.not.equal(old?.jti)
    expect(fresh?.uid).to.not.equal(old?.uid)
    expect(await harness.provider.Session.find(old?.jti ?? '')).to.equal(undefined)
  })

  it('rotates the session of the same account', async () => {
    const user = await addVerified(harness)
    const agent = createUserAgent()
    await harness.signIn(agent, user.username)
    const before = await sessionOf(agent)
    await changeUser(harness, user, { emailVerified: false })
    const login = await blockedLogin(harness, { user, agent })
    await expectResumed(harness, login, await agent.get(login.link))
    const after = await sessionOf(agent)
    expect([before?.accountId, after?.accountId]).to.deep.equal([user.id, user.id])
    expect(after?.jti).to.not.equal(before?.jti)
    expect(after?.uid).to.equal(before?.uid)
    expect(await harness.provider.Session.find(before?.jti ?? '')).to.equal(undefined)
  })

  it('replaces an anonymous session that somebody planted (SES-07)', async () => {
    const login = await blockedLogin(harness)
    const user = await addUnverified(harness)
    const [uri] = CONFIDENTIAL.redirect_uris
    const carried = { client_id: CONFIDENTIAL.client_id, redirect_uri: uri, scope: 'openid' }
    for (const link of [login.link, await resend(harness, user, carried)]) {
      const victim = createUserAgent()
      await victim.get(`${harness.oauthUrl}/session/end`)
      const planted = sessionId(harness, victim)
      const cookie = victim.cookiesFor(`${harness.oauthUrl}/auth`)
      expect(planted).to.be.a('string')
      expect((await victim.get(link)).location).to.match(/[?&]code=/)
      expect(sessionId(harness, victim)).to.not.equal(planted)
      expect(await harness.provider.Session.find(planted ?? '')).to.equal(undefined)

      const { url } = await harness.party.begin({ prompt: 'none' })
      const { location = '' } = await createUserAgent().get(url, { cookie })
      expect(new URL(location).searchParams.get('error')).to.equal('login_required')
      expect((await silently(harness, victim)).has('code')).to.equal(true)
    }
  })
})
