import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
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
import { onBothStores } from '../support/both-stores.ts'
import { CONFIDENTIAL, startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { expectMode, windowOf } from '../support/waiting-window.ts'

/** What Chromium and Firefox send when a person presses a button of our page. */
const PRESSED = { 'sec-fetch-site': 'same-origin', 'sec-fetch-user': '?1' }
/** The same when a script does, and what Safari sends for both. */
const SCRIPTED = { 'sec-fetch-site': 'same-origin' }

onBothStores('The setting email_link_confirmation (D14)', (technology) => {
  let harness: Harness

  before(async () => {
    harness = await startHarness({ technology })
  })
  after(() => harness.close())

  const setMode = (email_link_confirmation: string) => harness.put({ email_link_confirmation })
  const answerUrl = () => `${harness.oauthUrl}/verify-email`

  const press = (agent: UserAgent, page: Answer, action = 'confirm', headers = PRESSED) =>
    agent.post(answerUrl(), { ...page.hidden, action }, headers)

  function expectQuestion(page: Answer, status = 200) {
    expectMode(page, status, 'confirm')
    expect(setsSession(page)).to.equal(false)
    expect(page.text).to.include('name="action"').and.to.include('value="confirm"')
  }

  async function expectUntouched({ user, agent }: BlockedLogin, scanner: UserAgent) {
    expect(await isVerified(harness, user)).to.equal(false)
    expect(sessionId(harness, scanner)).to.equal(undefined)
    expect(sessionId(harness, agent)).to.equal(undefined)
  }

  /** The address is verified, and the browser has neither session nor code; the window that logged in goes on. */
  async function expectOnlyConfirmed(login: BlockedLogin, agent: UserAgent, answer: Answer) {
    expectMode(answer, 200, 'verified')
    expect(sessionId(harness, agent)).to.equal(undefined)
    expect(await isVerified(harness, login.user)).to.equal(true)
    await expectResumed(harness, login, await windowOf(harness, login).goOn())
    expectExpired(await createUserAgent().get(login.link))
  }

  async function signedIn(): Promise<{ owner: User; browser: UserAgent }> {
    const owner = await addVerified(harness)
    const browser = createUserAgent()
    expect((await harness.signIn(browser, owner.username)).location).to.match(/[?&]code=/)
    return { owner, browser }
  }

  describe('off', () => {
    before(() => setMode('off'))

    it('is the letter of 4.6: one GET verifies and redirects, in any browser', async () => {
      const login = await blockedLogin(harness)
      await expectResumed(harness, login, await login.agent.get(login.link))
      const other = await blockedLogin(harness)
      await expectResumed(harness, other, await createUserAgent().get(other.link))
    })
  })

  describe('other_browser', () => {
    before(() => setMode('other_browser'))

    it('lets the browser that logged in through at once', async () => {
      const login = await blockedLogin(harness)
      await expectResumed(harness, login, await login.agent.get(login.link))
      expect(await windowOf(harness, login).status()).to.equal('continued')
    })

    it('does so for each login of that browser, and after its cookie was given again', async () => {
      const agent = createUserAgent()
      const first = await blockedLogin(harness, { agent })
      const second = await blockedLogin(harness, { agent })
      await expectResumed(harness, second, await agent.get(second.link))
      const page = await agent.get(first.link)
      expectMode(page, 200, 'other_account')
      await expectResumed(harness, first, await press(agent, page, 'continue'))
    })
  })

  describe('always', () => {
    before(() => setMode('always'))

    it('asks the browser that logged in too, and then finishes the login there', async () => {
      const login = await blockedLogin(harness)
      const page = await login.agent.get(login.link)
      expectQuestion(page)
      await expectUntouched(login, login.agent)
      await expectResumed(harness, login, await press(login.agent, page))
      expect(await windowOf(harness, login).status()).to.equal('continued')
    })
  })

  for (const mode of ['other_browser', 'always']) {
    describe(`${mode}, in a browser other than the one that logged in`, () => {
      let login: BlockedLogin
      let other: UserAgent

      before(() => setMode(mode))

      beforeEach(async () => {
        login = await blockedLogin(harness)
        other = createUserAgent()
      })

      it('asks first, verifies after the button, and sends back to the first window: no session, no code (VER-03)', async () => {
        const page = await other.get(login.link)
        expectQuestion(page)
        await expectUntouched(login, other)
        await expectOnlyConfirmed(login, other, await press(other, page))
        const [event] = await eventsOf(harness, {
          type: 'email_verification_completed',
          accountId: login.user.id,
        })
        expect(event?.clientId).to.equal('app')
      })

      it('lets the form lead to the client and nowhere else', async () => {
        const page = await other.get(login.link)
        const policy = page.headers.get('content-security-policy') ?? ''
        expect(policy).to.include("form-action 'self' https:;")
        await expectOnlyConfirmed(login, other, await press(other, page))
      })

      it('lets it lead there also for a request that was too long for the link', async () => {
        const extra = { state: 's'.repeat(4_001), prompt: 'login' }
        const long = await blockedLogin(harness, { extra })
        expect(long.link).to.not.include('client_id')
        const page = await other.get(long.link)
        const policy = page.headers.get('content-security-policy') ?? ''
        expect(policy).to.include("form-action 'self' https:;")
        await expectOnlyConfirmed(long, other, await press(other, page))
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
          // `form.requestSubmit()` and `button.click()` send the button, and no sign of a person.
          [{ ...hidden, action: 'confirm' }, SCRIPTED],
          [{ ...hidden, action: 'confirm', person: '' }, SCRIPTED],
          [{ ...hidden, action: 'confirm', person: 'no' }, SCRIPTED],
          [{ ...hidden, action: 'confirm_only' }, SCRIPTED],
          [{ ...hidden, action: 'continue', session: '' }, SCRIPTED],
          [{ ...hidden, person: 'yes' }, SCRIPTED],
          [{ ...hidden, tick: 'yes' }, SCRIPTED],
          // Our script was there, and saw nobody tick or press anything.
          [{ ...hidden, action: 'confirm', tick: 'yes', scripted: 'yes' }, SCRIPTED],
          [{ ...hidden, action: 'confirm', tick: 'yes', scripted: 'yes' }, PRESSED],
        ] as const) {
          const answer = await scanner.post(answerUrl(), form, headers)
          expectQuestion(answer, 400)
          // Where our script is, a tick would not help.
          const hasBox = /<input[^>]*type="checkbox"[^>]*name="tick"/.test(answer.text)
          expect(hasBox).to.equal(!('scripted' in form))
          expect(answer.text).to.not.match(/<input[^>]* checked/)
          await expectUntouched(login, scanner)
        }
        const person = await other.get(login.link)
        await expectOnlyConfirmed(login, other, await press(other, person))
      })

      it('takes the tick of a person whose browser does not tell that a button was pressed', async () => {
        const page = await other.get(login.link)
        const asked = await press(other, page, 'confirm', SCRIPTED as typeof PRESSED)
        expectQuestion(asked, 400)
        await expectUntouched(login, other)
        const form = { ...asked.hidden, action: 'confirm', tick: 'yes' }
        await expectOnlyConfirmed(login, other, await other.post(answerUrl(), form, SCRIPTED))
      })

      it('takes the button of a browser that sends no such headers at all', async () => {
        const page = await other.get(login.link)
        const form = { ...page.hidden, action: 'confirm' }
        await expectOnlyConfirmed(login, other, await other.post(answerUrl(), form))
      })

      it('refuses the button on a page of another site, whatever it says of a person', async () => {
        const { hidden } = await other.get(login.link)
        for (const headers of [
          { 'sec-fetch-site': 'cross-site', 'sec-fetch-user': '?1' },
          { origin: 'https://evil.example' },
        ]) {
          const form = { ...hidden, action: 'confirm', person: 'yes', tick: 'yes' }
          const answer = await other.post(answerUrl(), form, headers)
          expect([answer.status, answer.mode]).to.deep.equal([403, 'refused'])
          await expectUntouched(login, other)
        }
        await expectOnlyConfirmed(login, other, await press(other, await other.get(login.link)))
      })

      it('asks nothing about a link that is not genuine, or was changed on its way', async () => {
        const page = await other.get(login.link)
        for (const change of [
          { state: 'evil' },
          { token: 'A'.repeat(43) },
          { authorize_sig: 'x' },
        ]) {
          const url = new URL(login.link)
          for (const [name, value] of Object.entries(change)) url.searchParams.set(name, value)
          expectExpired(await other.get(url))
          const form = { ...page.hidden, ...change, action: 'confirm' }
          expectExpired(await other.post(answerUrl(), form, PRESSED))
          await expectNothingChanged(harness, login, page)
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
        expect(await eventsOf(harness, { type, accountId: login.user.id })).to.have.length(1)
        await expectResumed(harness, login, await windowOf(harness, login).goOn())
      })

      it('leaves the session of another account as it is', async () => {
        const { owner, browser } = await signedIn()
        const session = sessionId(harness, browser)
        const page = await browser.get(login.link)
        expectQuestion(page)
        const answer = await press(browser, page)
        expectMode(answer, 200, 'verified')
        expect(sessionId(harness, browser)).to.equal(session)
        expect(await accountOf(harness, browser)).to.equal(owner.id)
        await expectResumed(harness, login, await windowOf(harness, login).goOn())
      })

      it('is not fooled by an answer to a question that was never asked', async () => {
        const { owner, browser } = await signedIn()
        const session = await harness.provider.Session.find(sessionId(harness, browser) ?? '')
        const { hidden } = await browser.get(login.link)
        const form = { ...hidden, action: 'continue', session: session?.uid ?? '' }
        const answer = await browser.post(answerUrl(), form, PRESSED)
        expectMode(answer, 200, 'verified')
        expect(await accountOf(harness, browser)).to.equal(owner.id)
        await expectResumed(harness, login, await windowOf(harness, login).goOn())
      })

      it('verifies without signing in where no login waits for the link', async () => {
        const user = await addUnverified(harness)
        const [redirect_uri] = CONFIDENTIAL.redirect_uris
        const carried = { client_id: CONFIDENTIAL.client_id, redirect_uri, scope: 'openid' }
        const page = await other.get(await resend(harness, user, carried))
        expectQuestion(page)
        const answer = await press(other, page)
        expectMode(answer, 200, 'verified')
        expect(sessionId(harness, other)).to.equal(undefined)
        expect(await isVerified(harness, user)).to.equal(true)
      })

      it('goes by the mode that is in force when the button is pressed', async () => {
        const page = await other.get(login.link)
        expectQuestion(page)
        await setMode('off')
        const answer = await press(other, page)
        await setMode(mode)
        await expectResumed(harness, login, answer)
      })
    })

    it(`${mode} asks about another account in the browser that logged in, and replaces it after the answer`, async () => {
      await setMode(mode)
      const { owner, browser } = await signedIn()
      const login = await blockedLogin(harness, {
        agent: browser,
        extra: { prompt: 'login' },
      })
      let page = await browser.get(login.link)
      if (mode === 'always') {
        expectQuestion(page)
        page = await press(browser, page)
      }
      expectMode(page, 200, 'other_account')
      expect(await isVerified(harness, login.user)).to.equal(false)
      expect(await accountOf(harness, browser)).to.equal(owner.id)
      await expectResumed(harness, login, await press(browser, page, 'continue'))
      expect(await accountOf(harness, browser)).to.equal(login.user.id)
    })
  }

  it('takes one tick, where it asks about another account too, of a browser that tells of no button', async () => {
    await setMode('always')
    const { owner, browser } = await signedIn()
    const login = await blockedLogin(harness, { agent: browser, extra: { prompt: 'login' } })
    const answer = (page: Answer, more: Record<string, string>) =>
      browser.post(answerUrl(), { ...page.hidden, ...more }, SCRIPTED)
    const asked = await answer(await browser.get(login.link), { action: 'confirm' })
    expectQuestion(asked, 400)
    const session = (await harness.provider.Session.find(sessionId(harness, browser) ?? ''))?.jti
    for (const action of ['continue', 'confirm_only']) {
      for (const named of ['', 'x']) {
        expectQuestion(await answer(asked, { action, session: named }), 400)
      }
    }
    const page = await answer(asked, { action: 'confirm', tick: 'yes' })
    expectMode(page, 200, 'other_account')
    expect(await isVerified(harness, login.user)).to.equal(false)
    expect(await accountOf(harness, browser)).to.equal(owner.id)
    expect(sessionId(harness, browser)).to.equal(session)
    await expectResumed(harness, login, await answer(page, { action: 'continue' }))
  })

  it('asks a browser for which the mode was switched on after it opened nothing yet', async () => {
    await setMode('off')
    const login = await blockedLogin(harness)
    await setMode('always')
    const page = await login.agent.get(login.link)
    expectQuestion(page)
    await expectNothingChanged(harness, login, page)
    await expectResumed(harness, login, await press(login.agent, page))
  })
})
