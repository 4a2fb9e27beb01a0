import { expect } from 'chai'
import {
  addUnverified,
  blockedLogin,
  eventsOf,
  expectResumed,
  isVerified,
  resend,
  sessionId,
  setsSession,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { PASSWORD } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { expectMode, numberOn, windowOf, wrongNumber } from '../support/waiting-window.ts'

/** Somebody made an account with the address of another person, knows its password, and waits at the blocked page. */
onBothStores(
  'A window of a stranger that waits for the owner of the mailbox (VER-26)',
  (technology) => {
    const h = suiteHarness({
      technology,
      settings: { email_link_confirmation: 'other_browser', waiting_window: 'match' },
    })

    let attack: BlockedLogin
    let victim: UserAgent
    let page: Answer

    beforeEach(async () => {
      attack = await blockedLogin(h)
      victim = createUserAgent()
      page = await victim.get(attack.link)
      expectMode(page, 200, 'confirm')
    })

    const answer = (more: Record<string, string>, by = victim) =>
      by.post(`${h.oauthUrl}/verify-email`, { ...page.hidden, ...more })

    const guess = (number: string) => answer({ action: 'confirm', number }, createUserAgent())

    /** No code and no session, however it is asked for. */
    async function expectNothing() {
      const window = windowOf(h, attack)
      for (const ask of [window.goOn(), window.reload(), attack.agent.get(attack.link)]) {
        const answer = await ask
        expect([answer.location, setsSession(answer)]).to.deep.equal([undefined, false])
      }
      expect(sessionId(h, attack.agent)).to.equal(undefined)
    }

    it('is named on the page, and over once that person sees no such window: nothing is verified', async () => {
      expect(page.text).to.include(attack.user.username).and.to.include('that window is signed in')
      expectMode(await answer({ action: 'disown' }), 200, 'disowned')
      await expectNothing()
      expect(await isVerified(h, attack.user)).to.equal(false)
      await eventsOf(h, { type: 'email_login_disowned', accountId: attack.user.id })
      // The password is known to the stranger still, and no new window of it waits.
      const again = await blockedLogin(h, { user: attack.user, agent: attack.agent })
      expect(numberOn(again.blocked)).to.equal(undefined)
      const honest = await blockedLogin(h)
      const number = numberOn(honest.blocked) ?? ''
      page = await victim.get(honest.link)
      expectMode(await answer({ action: 'confirm', number }), 200, 'verified')
      await expectResumed(h, honest, await windowOf(h, honest).goOn())
    })

    it('is over after two guesses, also of 30 that are sent at once', async () => {
      const right = numberOn(attack.blocked) ?? ''
      const numbers = Array.from({ length: 30 }, (_, at) => wrongNumber(right, at))
      const answers = await Promise.all(numbers.map(guess))
      const left = answers.filter(({ text }) => text.includes('You can try once more'))
      expect(left.length).to.be.at.most(1)
      expect(answers.every(({ mode, status }) => mode === 'confirm' && status === 400)).to.equal(
        true,
      )
      expect(await isVerified(h, attack.user)).to.equal(false)
      await expectNothing()
    })

    it('stays over, though the right number is among 90 that are sent at once afterwards', async () => {
      const numbers = Array.from({ length: 90 }, (_, at) => String(10 + at))
      const right = numberOn(attack.blocked) ?? ''
      for (const at of [0, 1]) await guess(wrongNumber(right, at))
      await Promise.all(numbers.map(guess))
      await expectNothing()
    })

    it('has two guesses in all, however often the stranger logs in again with the same request', async () => {
      const { agent, request, user, blocked } = attack
      const right = numberOn(blocked) ?? ''
      for (const number of [wrongNumber(right), wrongNumber(right, 1), right]) {
        page = await victim.get(attack.link)
        await answer({ action: 'confirm', number })
        await h.follow(agent, await agent.get(request.url))
        await agent.post(`${h.oauthUrl}/login`, { username: user.username, password: PASSWORD })
      }
      expect(await isVerified(h, user)).to.equal(false)
      expectMode(await answer({ action: 'confirm_only' }), 200, 'verified')
      await expectNothing()
    })

    it('does not go on by another link to that mailbox, or by another login of that account', async () => {
      const loose = await resend(h, attack.user, { client_id: 'app', state: 'of no login' })
      const second = await blockedLogin(h, { user: attack.user })
      for (const link of [loose, second.link]) {
        page = await victim.get(link)
        const number = numberOn(second.blocked) ?? ''
        const { mode } = await answer({ action: 'confirm', number })
        expect(['verified', 'expired']).to.include(mode)
      }
      await expectNothing()
    })

    it('asks for another number than the window of the person’s own account', async () => {
      const own = await blockedLogin(h, {
        user: await addUnverified(h, { email: attack.user.email }),
      })
      const [mine = '', theirs] = [own, attack].map(({ blocked }) => numberOn(blocked))
      if (mine === theirs) return
      const wrong = await answer({ action: 'confirm', number: mine })
      expectMode(wrong, 400, 'confirm')
      expect(await isVerified(h, attack.user)).to.equal(false)
    })
  },
)
