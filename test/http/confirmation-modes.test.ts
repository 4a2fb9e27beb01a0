import { expect } from 'chai'
import {
  accountOf,
  addUnverified,
  blockedLogin,
  eventsOf,
  expectExpired,
  expectNothingChanged,
  expectResumed,
  isVerified,
  resend,
  sessionId,
  setsSession,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { CONFIDENTIAL } from '../support/harness.ts'
import { signedIn } from '../support/other-account.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { expectMode, windowOf } from '../support/waiting-window.ts'

const MOZILLA = 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7)'
const WEBKIT = 'AppleWebKit/537.36 (KHTML, like Gecko)'
const CHROME = `${MOZILLA} ${WEBKIT} Chrome/140.0.0.0 Safari/537.36`
const FIREFOX = `${MOZILLA.replace(')', '; rv:140.0)')} Gecko/20100101 Firefox/140.0`
const SAFARI = `${MOZILLA} ${WEBKIT} Version/18.5 Safari/605.1.15`

/** What Chrome sends when a person presses a button of our page. */
const PRESSED = { 'user-agent': CHROME, 'sec-fetch-site': 'same-origin', 'sec-fetch-user': '?1' }
/** The same when a script does. */
const SCRIPTED = { 'user-agent': CHROME, 'sec-fetch-site': 'same-origin' }
const SCRIPTED_IN_FIREFOX = { ...SCRIPTED, 'user-agent': FIREFOX }
/** What Safari sends for both. */
const IN_SAFARI = { ...SCRIPTED, 'user-agent': SAFARI }

describe('The setting email_link_confirmation', () => {
  const h = suiteHarness()

  const setMode = (email_link_confirmation: string) => h.put({ email_link_confirmation })
  const answerUrl = () => `${h.oauthUrl}/verify-email`

  const press = (
    agent: UserAgent,
    page: Answer,
    action = 'confirm',
    headers: Record<string, string> = PRESSED,
  ) => agent.post(answerUrl(), { ...page.hidden, action }, headers)

  function expectQuestion(page: Answer, status = 200) {
    expectMode(page, status, 'confirm')
    expect(setsSession(page)).to.equal(false)
    expect(page.text).to.include('name="action"').and.to.include('value="confirm"')
  }

  async function expectUntouched({ user, agent }: BlockedLogin, scanner: UserAgent) {
    expect(await isVerified(h, user)).to.equal(false)
    expect(sessionId(h, scanner)).to.equal(undefined)
    expect(sessionId(h, agent)).to.equal(undefined)
  }

  /** The address is verified, and the browser has neither session nor code; the window that logged in goes on. */
  async function expectOnlyConfirmed(login: BlockedLogin, agent: UserAgent, answer: Answer) {
    expectMode(answer, 200, 'verified')
    expect(sessionId(h, agent)).to.equal(undefined)
    expect(await isVerified(h, login.user)).to.equal(true)
    await expectResumed(h, login, await windowOf(h, login).goOn())
    expectExpired(await createUserAgent().get(login.link))
  }

  describe('other_browser', () => {
    before(() => setMode('other_browser'))

    it('lets the browser that logged in through at once, for each of its logins, and after its cookie was given again', async () => {
      const agent = createUserAgent()
      const first = await blockedLogin(h, { agent })
      const second = await blockedLogin(h, { agent })
      await expectResumed(h, second, await agent.get(second.link))
      expect(await windowOf(h, second).status()).to.equal('continued')
      const page = await agent.get(first.link)
      expectMode(page, 200, 'other_account')
      await expectResumed(h, first, await press(agent, page, 'continue'))
    })
  })

  describe('always', () => {
    before(() => setMode('always'))

    it('asks the browser that logged in too, and then finishes the login there', async () => {
      const login = await blockedLogin(h)
      const page = await login.agent.get(login.link)
      expectQuestion(page)
      await expectUntouched(login, login.agent)
      await expectResumed(h, login, await press(login.agent, page))
      expect(await windowOf(h, login).status()).to.equal('continued')
    })
  })

  for (const mode of ['off', 'other_browser', 'always']) {
    it(`${mode}: what was fetched ahead spends nothing, and whoever is shown it goes on by its button (VER-02)`, async () => {
      await setMode(mode)
      const login = await blockedLogin(h)
      for (const headers of [{ 'sec-purpose': 'prefetch;prerender' }, { purpose: 'prefetch' }]) {
        // No browser keeps an answer of this status for the page that its person opens.
        expectQuestion(await login.agent.get(login.link, headers), 403)
        await expectUntouched(login, createUserAgent())
      }
      const page = await login.agent.get(login.link, { 'x-purpose': 'preview', purpose: 'preview' })
      expectQuestion(page, 403)
      await expectResumed(h, login, await press(login.agent, page))
      expectExpired(await login.agent.get(login.link, { purpose: 'prefetch' }))
    })

    it(`${mode}: after a prefetch the link does what it does without one (VER-02)`, async () => {
      await setMode(mode)
      const login = await blockedLogin(h)
      await login.agent.request('HEAD', login.link)
      await login.agent.get(login.link, { 'sec-purpose': 'prefetch' })
      const page = await login.agent.get(login.link)
      const answer = mode === 'always' ? await press(login.agent, page) : page
      await expectResumed(h, login, answer)
    })
  }

  for (const mode of ['other_browser', 'always']) {
    describe(`${mode}, in a browser other than the one that logged in`, () => {
      let login: BlockedLogin
      let other: UserAgent

      before(() => setMode(mode))

      beforeEach(async () => {
        login = await blockedLogin(h)
        other = createUserAgent()
      })

      it('asks first, verifies after the button, and sends back to the first window: no session, no code (VER-03)', async () => {
        const page = await other.get(login.link)
        expectQuestion(page)
        await expectUntouched(login, other)
        await expectOnlyConfirmed(login, other, await press(other, page))
        const [event] = await eventsOf(h, {
          type: 'email_verification_completed',
          accountId: login.user.id,
        })
        expect(event?.clientId).to.equal('app')
      })

      it('lets the form lead to the client and nowhere else, also where the request was too long for the link', async () => {
        const extra = { state: 's'.repeat(4_001), prompt: 'login' }
        const long = await blockedLogin(h, { extra })
        expect(long.link).to.not.include('client_id')
        for (const each of [login, long]) {
          const page = await other.get(each.link)
          const policy = page.headers.get('content-security-policy') ?? ''
          expect(policy).to.include("form-action 'self' https:;")
          await expectOnlyConfirmed(each, other, await press(other, page))
        }
      })

      it('is not moved by scanners that fetch, render, or send the form by script (VER-04)', async () => {
        const scanner = createUserAgent()
        await scanner.request('HEAD', login.link)
        for (const headers of [{}, { 'sec-purpose': 'prefetch' }, { 'sec-fetch-dest': 'iframe' }]) {
          await scanner.get(login.link, headers)
        }
        const page = await scanner.get(login.link)
        expectQuestion(page)
        const { hidden } = page
        for (const [form, headers] of [
          // `form.submit()` sends no button, whatever the browser says of itself.
          [hidden, {}],
          [hidden, SCRIPTED],
          [hidden, PRESSED],
          [hidden, IN_SAFARI],
          // `form.requestSubmit()` and `button.click()` send the button, and no sign of a person.
          [{ ...hidden, action: 'confirm' }, SCRIPTED],
          [{ ...hidden, action: 'confirm' }, SCRIPTED_IN_FIREFOX],
          [{ ...hidden, action: 'confirm_only' }, SCRIPTED],
          [{ ...hidden, action: 'continue', session: '' }, SCRIPTED],
        ] as const) {
          expectQuestion(await scanner.post(answerUrl(), form, headers), 400)
          await expectUntouched(login, scanner)
        }
        const person = await other.get(login.link)
        await expectOnlyConfirmed(login, other, await press(other, person))
      })

      it('takes the button where the browser does not tell who pressed it', async () => {
        for (const headers of [IN_SAFARI, { 'user-agent': CHROME }, {}]) {
          const each = await blockedLogin(h)
          const page = await other.get(each.link)
          await expectOnlyConfirmed(each, other, await press(other, page, 'confirm', headers))
        }
      })

      it('asks nothing about a link that is not genuine, or was changed on its way', async () => {
        const page = await other.get(login.link)
        for (const [name, value] of [
          ['state', 'evil'],
          ['token', 'A'.repeat(43)],
          ['authorize_sig', 'x'],
        ] as const) {
          const url = new URL(login.link)
          url.searchParams.set(name, value)
          expectExpired(await other.get(url))
          const form = { ...page.hidden, [name]: value, action: 'confirm' }
          expectExpired(await other.post(answerUrl(), form, PRESSED))
          await expectNothingChanged(h, login, page)
        }
        await expectOnlyConfirmed(login, other, await press(other, page))
      })

      it('verifies once, of 20 buttons pressed at the same moment', async () => {
        const { hidden } = await other.get(login.link)
        const answers = await Promise.all(
          Array.from({ length: 20 }, () =>
            createUserAgent().post(answerUrl(), { ...hidden, action: 'confirm' }, PRESSED),
          ),
        )
        expect(answers.every((answer) => !setsSession(answer) && !answer.location)).to.equal(true)
        const type = 'email_verification_completed' as const
        expect(await eventsOf(h, { type, accountId: login.user.id })).to.have.length(1)
        await expectResumed(h, login, await windowOf(h, login).goOn())
      })

      it('leaves the session of another account as it is', async () => {
        const { owner, browser } = await signedIn(h)
        const session = sessionId(h, browser)
        const page = await browser.get(login.link)
        expectQuestion(page)
        const answer = await press(browser, page)
        expectMode(answer, 200, 'verified')
        expect(sessionId(h, browser)).to.equal(session)
        expect(await accountOf(h, browser)).to.equal(owner.id)
        await expectResumed(h, login, await windowOf(h, login).goOn())
      })

      it('is not fooled by an answer to a question that was never asked', async () => {
        const { owner, browser } = await signedIn(h)
        const session = await h.provider.Session.find(sessionId(h, browser) ?? '')
        const { hidden } = await browser.get(login.link)
        const form = { ...hidden, action: 'continue', session: session?.uid ?? '' }
        const answer = await browser.post(answerUrl(), form, PRESSED)
        expectMode(answer, 200, 'verified')
        expect(await accountOf(h, browser)).to.equal(owner.id)
        await expectResumed(h, login, await windowOf(h, login).goOn())
      })

      it('verifies without signing in where no login waits for the link', async () => {
        const user = await addUnverified(h)
        const [redirect_uri] = CONFIDENTIAL.redirect_uris
        const carried = { client_id: CONFIDENTIAL.client_id, redirect_uri, scope: 'openid' }
        const page = await other.get(await resend(h, user, carried))
        expectQuestion(page)
        const answer = await press(other, page)
        expectMode(answer, 200, 'verified')
        expect(sessionId(h, other)).to.equal(undefined)
        expect(await isVerified(h, user)).to.equal(true)
      })

      it('goes by the mode that is in force when the button is pressed', async () => {
        const page = await other.get(login.link)
        expectQuestion(page)
        await setMode('off')
        const answer = await press(other, page)
        await setMode(mode)
        await expectResumed(h, login, answer)
      })
    })

    it(`${mode} asks about another account in the browser that logged in, and replaces it after the answer`, async () => {
      await setMode(mode)
      const { owner, browser } = await signedIn(h)
      const login = await blockedLogin(h, {
        agent: browser,
        extra: { prompt: 'login' },
      })
      let page = await browser.get(login.link)
      if (mode === 'always') {
        expectQuestion(page)
        page = await press(browser, page)
      }
      expectMode(page, 200, 'other_account')
      expect(await isVerified(h, login.user)).to.equal(false)
      expect(await accountOf(h, browser)).to.equal(owner.id)
      await expectResumed(h, login, await press(browser, page, 'continue'))
      expect(await accountOf(h, browser)).to.equal(login.user.id)
    })
  }
})
