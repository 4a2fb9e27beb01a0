import { expect } from 'chai'
import type { User } from '../../src/index.ts'
import { resend } from '../support/blocked-login.ts'
import { CONFIDENTIAL } from '../support/harness.ts'
import {
  expectOtherAccount,
  expectPlantedReplaced,
  expectReplaced,
  sessionOf,
  signedIn,
} from '../support/other-account.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'
import {
  accountOf,
  addUnverified,
  addVerified,
  blockedLogin,
  sessionId,
  type Person,
} from '../support/person.ts'

const OF_ANOTHER_CLIENT = {
  client_id: CONFIDENTIAL.client_id,
  redirect_uri: CONFIDENTIAL.redirect_uris[0],
  scope: 'openid',
}

describe('A verification link in a browser with a session (4.6)', () => {
  const h = suiteHarness()

  describe('of another account', () => {
    let login: Person
    let owner: User
    let browser: UserAgent

    beforeEach(async () => {
      login = await blockedLogin(h)
      ;({ owner, browser } = await signedIn(h))
    })

    it('verifies and replaces nothing, names neither account, and consumes nothing: sign out first, or use the code (VER-18)', async () => {
      const session = sessionId(h, browser)
      for (const _time of [1, 2, 3]) {
        const page = await browser.get(login.link)
        expectOtherAccount(page, [owner, login])
        expect(page.text).to.include('Sign out first').and.to.not.include('<form')
        expect(sessionId(h, browser)).to.equal(session)
        expect(await login.isVerified()).to.equal(false)
      }
      expect(await accountOf(h, browser)).to.equal(owner.id)
      await browser.get(`${h.oauthUrl}/session/end`)
      await (await sessionOf(h, browser))?.destroy()
      await login.comesBack(await browser.get(login.link))
    })

    it('leaves the code good where the login waits', async () => {
      expectOtherAccount(await browser.get(login.link), [owner, login])
      await login.comesBack(await login.types(login.code))
      expect(await accountOf(h, browser)).to.equal(owner.id)
    })

    it('says the same in the browser that logged in, where the code goes on', async () => {
      const { agent } = login
      const other = (await signedIn(h, agent)).owner
      expectOtherAccount(await agent.get(login.link), [other, login])
      expect(await accountOf(h, agent)).to.equal(other.id)
      await login.comesBack(await login.types(login.code))
    })

    it('answers no form', async () => {
      const query = Object.fromEntries(new URL(login.link).searchParams)
      for (const action of ['confirm', 'continue', 'confirm_only', 'disown']) {
        const answer = await browser.post(`${h.oauthUrl}/verify-email`, { ...query, action })
        expect([answer.status, answer.headers.get('allow')]).to.deep.equal([405, 'GET, HEAD'])
        expect(await login.isVerified()).to.equal(false)
      }
      await login.comesBack(await login.agent.get(login.link))
    })

    it('leaves it alone for a link that no login waits for, too', async () => {
      const user = await addUnverified(h)
      const link = await user.asksAgain(OF_ANOTHER_CLIENT)
      expectOtherAccount(await browser.get(link), [owner, user])
      expect((await createUserAgent().get(link)).location).to.match(
        /^https:\/\/server\.example\/cb\?code=/,
      )
    })
  })

  it('rotates the session of the same account', async () => {
    const user = await addVerified(h)
    const agent = createUserAgent()
    await h.signIn(agent, user.username)
    const before = await sessionOf(h, agent)
    await user.becomes({ emailVerified: false })
    const login = await blockedLogin(h, { user, agent })
    await login.comesBack(await agent.get(login.link))
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
