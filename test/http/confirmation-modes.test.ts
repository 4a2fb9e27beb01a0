import { expect } from 'chai'
import { eventsOf, expectExpired } from '../support/blocked-login.ts'
import { CONFIDENTIAL } from '../support/harness.ts'
import { formsOf } from '../support/page-forms.ts'
import { signedIn } from '../support/other-account.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { expectMode, pendingOf, windowOf } from '../support/waiting-window.ts'
import {
  accountOf,
  addUnverified,
  blockedLogin,
  sessionId,
  setsSession,
  type Person,
  codeOn,
} from '../support/person.ts'

describe('The setting email_link_confirmation', () => {
  const h = suiteHarness()

  const setMode = (email_link_confirmation: string) => h.put({ email_link_confirmation })

  async function expectUntouched({ user, agent }: Person, other: UserAgent) {
    expect(await user.isVerified()).to.equal(false)
    for (const each of [agent, other]) expect(sessionId(h, each)).to.equal(undefined)
  }

  for (const mode of ['off', 'other_browser']) {
    it(`${mode}: what was fetched ahead spends nothing, shows no code, and goes on by its button where it is shown all the same (VER-02)`, async () => {
      await setMode(mode)
      const login = await blockedLogin(h)
      let page: Answer | undefined
      for (const [method, headers] of [
        ['GET', { 'sec-purpose': 'prefetch;prerender' }],
        ['GET', { purpose: 'prefetch' }],
        ['GET', { 'sec-fetch-dest': 'iframe' }],
        ['HEAD', {}],
        ['GET', { 'x-purpose': 'preview', purpose: 'preview' }],
      ] as const) {
        for (const agent of [createUserAgent(), login.agent]) {
          page = await agent.request(method, login.link, { headers })
          // No browser keeps an answer of this status for the page that its person opens.
          expect([page.status, page.location, setsSession(page)]).to.deep.equal([
            403,
            undefined,
            false,
          ])
          expect(page.text).to.not.include(login.code)
          await expectUntouched(login, agent)
        }
      }
      const [button] = formsOf(page ?? login.blocked)
      const query = new URLSearchParams(button?.fields).toString()
      await login.comesBack(await login.agent.get(`${h.oauthUrl}/verify-email?${query}`))
      expectExpired(await login.agent.get(login.link, { purpose: 'prefetch' }))
    })
  }

  describe('other_browser', () => {
    before(() => setMode('other_browser'))

    it('finishes the login that waits where the link is opened: its own, each with its own request', async () => {
      const agent = createUserAgent()
      const first = await blockedLogin(h, { agent })
      const second = await blockedLogin(h, { agent })
      for (const login of [second, first]) {
        await login.comesBack(await agent.get(login.link))
        expectMode(await login.reloads(), 200, 'signed_in')
      }
    })

    it('otherwise the newest one of the account there, never with the parameters of the link', async () => {
      const elsewhere = await blockedLogin(h)
      const { user } = elsewhere
      const agent = createUserAgent()
      const older = await blockedLogin(h, { user, agent })
      const newest = await blockedLogin(h, { user, agent, extra: { state: 'of the newest' } })
      await newest.comesBack(await agent.get(elsewhere.link))
      for (const login of [elsewhere, older]) expectMode(await login.goesOn(), 400, 'ended')
    })

    it('finishes the newest also by a link that support sent, and that no login waits for', async () => {
      const login = await blockedLogin(h)
      const link = await login.asksAgain()
      await login.comesBack(await login.agent.get(link))
    })

    it('does not finish a login of another account that waits in the browser', async () => {
      const login = await blockedLogin(h)
      const own = await blockedLogin(h)
      const page = await own.agent.get(login.link)
      expect(codeOn(page)).to.equal(login.code)
      await expectUntouched(login, own.agent)
      await own.comesBack(await own.agent.get(own.link))
    })

    describe('in any other browser', () => {
      let login: Person
      let other: UserAgent

      beforeEach(async () => {
        login = await blockedLogin(h)
        other = createUserAgent()
      })

      it('verifies nothing, and shows the code with the account, the client and the time (VER-03, VER-04)', async () => {
        for (const agent of [other, other, (await signedIn(h)).browser]) {
          const session = sessionId(h, agent)
          const page = await agent.get(login.link)
          expectMode(page, 200, 'elsewhere')
          expect(codeOn(page)).to.equal(login.code)
          const facts = [...page.text.matchAll(/<li>([^<]*)<\/li>/g)].map(([, fact]) => fact)
          expect(facts.slice(0, 2)).to.deep.equal([`Account: ${login.username}`, 'App: The App'])
          const { createdAt } = await pendingOf(h, windowOf(h, login))
          expect(facts[2]).to.include(String(createdAt.getUTCFullYear())).and.to.include('UTC')
          expect(page.text).to.include('Never tell this code').and.to.not.include('<form')
          expect(setsSession(page)).to.equal(false)
          expect(sessionId(h, agent)).to.equal(session)
          expect(await login.isVerified()).to.equal(false)
        }
        await login.comesBack(await login.types(login.code))
        const type = 'email_verification_completed' as const
        const [event] = await eventsOf(h, { type, accountId: login.id })
        expect(event?.clientId).to.equal('app')
        expectExpired(await other.get(login.link))
      })

      it('shows no code once its login waits no more, and says to sign in again', async () => {
        const ended = [
          () => login.goesOn({ action: 'cancel' }),
          async () => h.store.pendingLogins.change({ id: login.loginId() }, { isVoid: true }),
          async () => {
            await h.put({ require_email_verification: 'false' })
            expect((await login.goesOn()).location).to.include('code=')
            await h.put({ require_email_verification: 'true' })
          },
        ]
        for (const end of ended) {
          login = await blockedLogin(h)
          await end()
          const page = await other.get(login.link)
          expectMode(page, 200, 'elsewhere')
          expect(codeOn(page)).to.equal(undefined)
          expect(page.text).to.include('Sign in again where you want to be signed in')
          expect(await login.isVerified()).to.equal(false)
        }
        const next = await blockedLogin(h, { user: login })
        await next.comesBack(await next.types(next.code))
      })

      it('shows no code for a link that no login waits for', async () => {
        const user = await addUnverified(h)
        const [redirect_uri] = CONFIDENTIAL.redirect_uris
        const carried = { client_id: CONFIDENTIAL.client_id, redirect_uri, scope: 'openid' }
        const page = await other.get(await user.asksAgain(carried))
        expectMode(page, 200, 'elsewhere')
        expect(codeOn(page)).to.equal(undefined)
        expect(await user.isVerified()).to.equal(false)
      })

      it('shows nothing for a link that is not genuine, or was changed on its way', async () => {
        for (const [name, value] of [
          ['state', 'evil'],
          ['token', 'A'.repeat(43)],
          ['authorize_sig', 'x'],
        ] as const) {
          const url = new URL(login.link)
          url.searchParams.set(name, value)
          const page = await other.get(url)
          expectExpired(page)
          expect(page.text).to.not.include(login.code)
        }
        await login.comesBack(await login.agent.get(login.link))
      })

      it('goes by the mode that is in force when the link is opened', async () => {
        expectMode(await other.get(login.link), 200, 'elsewhere')
        await setMode('off')
        const answer = await other.get(login.link)
        await setMode('other_browser')
        await login.comesBack(answer)
        expect(await accountOf(h, other)).to.equal(login.id)
      })
    })
  })
})
