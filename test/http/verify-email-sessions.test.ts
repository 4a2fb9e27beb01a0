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
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { CONFIDENTIAL } from '../support/harness.ts'
import {
  expectAccountQuestion,
  expectPlantedReplaced,
  expectReplaced,
  sessionOf,
  signedIn,
} from '../support/other-account.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'

const OF_ANOTHER_CLIENT = {
  client_id: CONFIDENTIAL.client_id,
  redirect_uri: CONFIDENTIAL.redirect_uris[0],
  scope: 'openid',
}

describe('A verification link in a browser with a session (4.6)', () => {
  const h = suiteHarness()

  const answerTo = (page: Answer, action: string, headers = {}) =>
    [`${h.oauthUrl}/verify-email`, { ...page.hidden, action }, headers] as const

  describe('of another account', () => {
    let login: BlockedLogin
    let owner: User
    let browser: UserAgent
    let page: Answer

    beforeEach(async () => {
      login = await blockedLogin(h)
      ;({ owner, browser } = await signedIn(h))
      page = await browser.get(login.link)
    })

    async function expectUntouched(answer: Answer, session: string | undefined) {
      expect(answer.location).to.equal(undefined)
      expect(setsSession(answer)).to.equal(false)
      expect(sessionId(h, browser)).to.equal(session)
      expect(await isVerified(h, login.user)).to.equal(false)
    }

    it('asks first, names neither account, and consumes nothing', async () => {
      const session = sessionId(h, browser)
      for (const _time of [1, 2, 3]) {
        const again = await browser.get(login.link)
        expectAccountQuestion(again, [owner, login.user])
        await expectUntouched(again, session)
      }
      expect(await accountOf(h, browser)).to.equal(owner.id)
      await expectResumed(h, login, await login.agent.get(login.link))
    })

    it('replaces the session after "continue", and answers 302', async () => {
      const before = await sessionOf(h, browser)
      const answer = await browser.post(...answerTo(page, 'continue'))
      await expectResumed(h, login, answer)
      const after = await sessionOf(h, browser)
      await expectReplaced(h, before, after, [owner, login.user])
      expect(Object.keys(after?.authorizations ?? {})).to.deep.equal(['app'])
      expect(await accountOf(h, browser)).to.equal(login.user.id)
      expectExpired(await createUserAgent().get(login.link))
    })

    it('verifies and leaves the session after "only confirm"', async () => {
      const before = sessionId(h, browser)
      const answer = await browser.post(...answerTo(page, 'confirm_only'))
      expect([answer.status, answer.mode]).to.deep.equal([200, 'verified'])
      expect([answer.location, setsSession(answer)]).to.deep.equal([undefined, false])
      expect(sessionId(h, browser)).to.equal(before)
      expect(await isVerified(h, login.user)).to.equal(true)
      expect(await accountOf(h, browser)).to.equal(owner.id)
      expectExpired(await createUserAgent().get(login.link))
    })

    it('refuses an answer that is none, or whose link was changed', async () => {
      const session = sessionId(h, browser)
      const url = `${h.oauthUrl}/verify-email`
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
      await expectResumed(h, login, await browser.post(...answerTo(page, 'continue')))
    })

    it('lets the page’s form lead to the client and nowhere else', async () => {
      const policy = page.headers.get('content-security-policy') ?? ''
      expect(policy).to.include("form-action 'self' https:;")
      const answer = await browser.get(login.link.replace('app.example', 'evil.example'))
      expect(answer.headers.get('content-security-policy')).to.not.include('evil')
    })

    it('does nothing once the link was used elsewhere between question and answer', async () => {
      await expectResumed(h, login, await login.agent.get(login.link))
      const session = sessionId(h, browser)
      for (const action of ['continue', 'confirm_only']) {
        expectExpired(await browser.post(...answerTo(page, action)))
      }
      expect(sessionId(h, browser)).to.equal(session)
      expect(await accountOf(h, browser)).to.equal(owner.id)
    })

    it('ends the other session only when the link does sign in', async () => {
      await changeUser(h, login.user, { email: 'elsewhere@users.example' })
      expectExpired(await browser.post(...answerTo(page, 'continue')))
      expect(await accountOf(h, browser)).to.equal(owner.id)
      await changeUser(h, login.user, { email: login.user.email })
      await expectResumed(h, login, await browser.post(...answerTo(page, 'continue')))
    })
  })

  it('asks first for a link that no login waits for, too', async () => {
    const { owner, browser } = await signedIn(h)
    const user = await addUnverified(h)
    const page = await browser.get(await resend(h, user, OF_ANOTHER_CLIENT))
    expectAccountQuestion(page, [owner, user])
    const old = await sessionOf(h, browser)
    const answer = await browser.post(...answerTo(page, 'continue'))
    expect(answer.status).to.equal(302)
    expect(answer.location).to.match(/^https:\/\/server\.example\/cb\?code=/)
    await expectReplaced(h, old, await sessionOf(h, browser), [owner, user])
  })

  it('rotates the session of the same account', async () => {
    const user = await addVerified(h)
    const agent = createUserAgent()
    await h.signIn(agent, user.username)
    const before = await sessionOf(h, agent)
    await changeUser(h, user, { emailVerified: false })
    const login = await blockedLogin(h, { user, agent })
    await expectResumed(h, login, await agent.get(login.link))
    await expectReplaced(h, before, await sessionOf(h, agent), [user, user])
  })

  it('replaces an anonymous session that somebody planted (SES-07)', async () => {
    const { link } = await blockedLogin(h)
    for (const each of [link, await resend(h, await addUnverified(h), OF_ANOTHER_CLIENT)]) {
      const victim = createUserAgent()
      await expectPlantedReplaced(h, victim, async () => {
        expect((await victim.get(each)).location).to.match(/[?&]code=/)
      })
    }
  })
})
