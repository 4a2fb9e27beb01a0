import { expect } from 'chai'
import {
  blockedLogin,
  eventsOf,
  expectExpired,
  expectResumed,
  isVerified,
  resend,
  sessionId,
  setsSession,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import type { Harness } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import {
  expectMode,
  numberOn,
  pendingOf,
  windowOf,
  wrongNumber,
} from '../support/waiting-window.ts'

const HOUR_MS = 3_600_000
const CAREFUL = { email_link_confirmation: 'other_browser', waiting_window: 'match' }
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'

const inDigits = (zero: number) => (number: string) =>
  [...number].map((digit) => String.fromCharCode(zero + Number(digit))).join('')
const WRITTEN = {
  blanks: (number: string) => ` ${[...number].join('\u00A0')}\t`,
  Arabic: inDigits(0x660),
  Persian: inDigits(0x6f0),
  wide: inDigits(0xff10),
  'marks of direction': (number: string) => `\u2067${number}\u2069\u200F`,
}

type Posts = (page: Answer, more: Record<string, string>) => Promise<Answer>

const answering =
  (h: Harness, agent: UserAgent): Posts =>
  (page, more) =>
    agent.post(`${h.oauthUrl}/verify-email`, { ...page.hidden, ...more })

const asksForNumber = ({ text }: Answer) => text.includes('name="number"')

/** The number is asked for, and nothing happened. */
async function expectAsked(h: Harness, { user }: BlockedLogin, page: Answer, status = 200) {
  expectMode(page, status, 'confirm')
  expect(asksForNumber(page)).to.equal(true)
  expect(setsSession(page)).to.equal(false)
  expect(await isVerified(h, user)).to.equal(false)
}

/** Its window and all of its links sign nobody in any more. */
async function expectEnded(h: Harness, login: BlockedLogin) {
  const window = windowOf(h, login)
  expectMode(await window.goOn(), 400, 'ended')
  expectMode(await window.reload(), 400, 'ended')
  expect(sessionId(h, login.agent)).to.equal(undefined)
}

describe('The setting waiting_window', () => {
  const h = suiteHarness()

  for (const confirmation of ['off', 'other_browser', 'always']) {
    for (const rule of ['match', 'continue', 'off']) {
      it(`${rule}, where email_link_confirmation is ${confirmation}: each browser that opens the link, and the window`, async () => {
        await h.put({ email_link_confirmation: confirmation, waiting_window: rule })
        const isCareful = confirmation !== 'off'

        const here = await blockedLogin(h)
        expect(numberOn(here.blocked) !== undefined).to.equal(isCareful && rule === 'match')
        expect(here.blocked.text.includes('data-status-url')).to.equal(rule !== 'off')
        let answer = await here.agent.get(here.link)
        if (confirmation === 'always') {
          expect(asksForNumber(answer)).to.equal(false)
          answer = await answering(h, here.agent)(answer, { action: 'confirm' })
        }
        await expectResumed(h, here, answer)
        expectMode(await windowOf(h, here).goOn(), 200, 'signed_in')

        const there = await blockedLogin(h)
        const other = createUserAgent()
        answer = await other.get(there.link)
        if (isCareful) {
          expectMode(answer, 200, 'confirm')
          expect(asksForNumber(answer)).to.equal(rule === 'match')
          const number = numberOn(there.blocked) ?? ''
          answer = await answering(h, other)(answer, { action: 'confirm', number })
          expectMode(answer, 200, 'verified')
          expect(sessionId(h, other)).to.equal(undefined)
        } else await expectResumed(h, there, answer)
        expect(await isVerified(h, there.user)).to.equal(true)
        const window = windowOf(h, there)
        if (rule === 'off') {
          for (const ask of [window.goOn, window.reload]) expectMode(await ask(), 200, 'verified')
          expect(sessionId(h, there.agent)).to.equal(undefined)
        } else await expectResumed(h, there, await window.goOn())
      })
    }
  }

  it('off: the page has both ways out, and neither asks for anything nor promises it', async () => {
    await h.put({ email_link_confirmation: 'other_browser', waiting_window: 'off' })
    const login = await blockedLogin(h)
    for (const page of [login.blocked, await windowOf(h, login).reload()]) {
      expectMode(page, 200, 'blocked')
      expect(page.text).to.include('value="cancel"').and.to.include('value="other_account"')
      expect(page.text).to.not.include('data-status-url').and.to.not.include('role="status"')
    }
    const denied = await windowOf(h, login).goOn({ action: 'cancel' })
    expect(new URL(denied.location ?? '').searchParams.get('error')).to.equal('access_denied')
  })

  describe('match, in another browser', () => {
    let login: BlockedLogin
    let number: string
    let other: UserAgent
    let post: Posts

    before(() => h.put(CAREFUL))
    beforeEach(async () => {
      login = await blockedLogin(h)
      number = numberOn(login.blocked) ?? ''
      other = createUserAgent()
      post = answering(h, other)
    })

    const confirm = (page: Answer, typed?: string) =>
      post(page, { action: 'confirm', ...(typed !== undefined && { number: typed }) })

    it('the number is the same on every page of the window, and on no other: no mail, no address, no status', async () => {
      expect(number).to.match(/^[1-9]\d$/)
      const window = windowOf(h, login)
      const another = { ...login.blocked.hidden, username: login.user.username }
      const askedBy = (agent: UserAgent) => agent.post(`${h.oauthUrl}/resend-verification`, another)
      for (const page of [await window.reload(), await window.goOn(), await askedBy(login.agent)])
        expect(numberOn(page)).to.equal(number)
      expect((await window.poll()).text).to.equal('{"status":"waiting"}')
      const asked = await other.get(login.link)
      for (const { text } of [asked, await window.in(other).reload(), await askedBy(other)]) {
        expect(text).to.not.match(/class="number"/)
      }
      for (const { mail } of h.mail.mails.filter(({ to }) => to.includes(login.user.email ?? ''))) {
        expect(String(mail.text)).to.not.match(new RegExp(`(?<![\\w-])${number}(?![\\w-])`))
      }
    })

    it('the page says whose login it is, of which client, since when and in which browser', async () => {
      const agent = createUserAgent()
      const { get, post } = agent
      agent.get = (url, headers) => get(url, { 'user-agent': FIREFOX, ...headers })
      agent.post = (url, form, headers) => post(url, form, { 'user-agent': FIREFOX, ...headers })
      const told = await blockedLogin(h, { agent })
      const page = await other.get(told.link)
      await expectAsked(h, told, page)
      const facts = [...page.text.matchAll(/<li>([^<]*)<\/li>/g)].map(([, fact]) => fact)
      const { createdAt } = await pendingOf(h, windowOf(h, told))
      expect(facts.slice(0, 3)).to.deep.equal([
        `Account: ${told.user.username}`,
        'App: The App',
        'Browser: Firefox on Linux',
      ])
      expect(facts[3]).to.include(`${createdAt.getUTCFullYear()} at `).and.to.include('UTC')
      const unknown = await other.get(login.link)
      expect(unknown.text).to.include('<li>Browser: unknown</li>')
    })

    it('its window goes on, and no other one of that account', async () => {
      const second = await blockedLogin(h, { user: login.user })
      const page = await confirm(await other.get(login.link), number)
      expectMode(page, 200, 'verified')
      expect(page.text).to.include('will continue automatically')
      await expectEnded(h, second)
      await expectResumed(h, login, await windowOf(h, login).goOn())
    })

    it('digits of other scripts, and blanks, are read', async () => {
      for (const written of Object.values(WRITTEN)) {
        const each = await blockedLogin(h)
        const typed = written(numberOn(each.blocked) ?? '')
        expectMode(await confirm(await other.get(each.link), typed), 200, 'verified')
        await expectResumed(h, each, await windowOf(h, each).goOn())
      }
    })

    it('a wrong number may be corrected once', async () => {
      let page = await confirm(await other.get(login.link), wrongNumber(number))
      await expectAsked(h, login, page, 400)
      expect(page.text).to.include('You can try once more')
      expect(page.text).to.match(/<input id="number"[^>]*aria-invalid="true"/)
      expect(await windowOf(h, login).status()).to.equal('waiting')
      page = await confirm(page, number)
      expectMode(page, 200, 'verified')
      await expectResumed(h, login, await windowOf(h, login).goOn())
    })

    it('what is no number of two digits is no try, and an old page without the field neither', async () => {
      const page = await other.get(login.link)
      for (const typed of [
        '',
        ' ',
        'x',
        '7',
        '007',
        '100',
        '4 2 1',
        '-42',
        '4.2',
        '0x2a',
        '４',
        undefined,
      ]) {
        const again = await confirm(page, typed)
        await expectAsked(h, login, again, 400)
        expect(again.text).to.include('Enter the two digits')
      }
      expectMode(await confirm(page, number), 200, 'verified')
      await expectResumed(h, login, await windowOf(h, login).goOn())
    })

    it('a second wrong number ends the login; the address can still be confirmed, and nobody is signed in', async () => {
      const first = await other.get(login.link)
      await confirm(first, wrongNumber(number))
      const page = await confirm(first, wrongNumber(number, 1))
      expectMode(page, 400, 'confirm')
      expect(asksForNumber(page)).to.equal(false)
      expect(page.text).to.include(`Account: ${login.user.username}`)
      expect(await isVerified(h, login.user)).to.equal(false)
      expect(await windowOf(h, login).status()).to.equal('ended')
      await expectEnded(h, login)
      const [event] = await eventsOf(h, { type: 'email_login_disowned', accountId: login.user.id })
      expect([event?.reason, event?.clientId]).to.deep.equal(['wrong_number', 'app'])
      // The right one is too late.
      for (const page of [await confirm(first, number), await other.get(login.link)]) {
        expectMode(page, page.status, 'confirm')
        expect(page.text).to.include('Nobody is signed in by that')
        expect(asksForNumber(page)).to.equal(false)
      }
      expect(await isVerified(h, login.user)).to.equal(false)
      expectMode(await post(first, { action: 'confirm_only' }), 200, 'verified')
      await expectEnded(h, login)
      const done = { type: 'email_verification_completed', accountId: login.user.id } as const
      expect(await eventsOf(h, done)).to.have.length(1)
    })

    it('a login that its own window left asks for no number any more', async () => {
      const asked = await other.get(login.link)
      await windowOf(h, login).goOn({ action: 'cancel' })
      expect(asksForNumber(await other.get(login.link))).to.equal(false)
      expectMode(await confirm(asked, number), 400, 'confirm')
      expectMode(await confirm(asked), 200, 'verified')
      await expectEnded(h, login)
    })

    it('“only confirm”, sent without being offered, ends every window', async () => {
      const second = await blockedLogin(h, { user: login.user })
      const page = await post(await other.get(login.link), { action: 'confirm_only', number })
      expectMode(page, 200, 'verified')
      expect(page.text).to.not.include('will continue automatically')
      for (const each of [login, second]) await expectEnded(h, each)
    })

    it('a link that no login waits for asks for no number, and lets no window go on', async () => {
      const loose = await resend(h, login.user, { client_id: 'app', state: 'none waits with this' })
      const page = await other.get(loose)
      expectMode(page, 200, 'confirm')
      expect(asksForNumber(page)).to.equal(false)
      expectMode(await confirm(page), 200, 'verified')
      await expectEnded(h, login)
    })

    it('support verifies, and the window goes on without a number', async () => {
      await h.users.markEmailVerified(login.user.id, login.user.email ?? '')
      await expectResumed(h, login, await windowOf(h, login).goOn())
    })

    it('goes by the setting that is in force when a page is answered', async () => {
      const asked = await other.get(login.link)
      await h.put({ waiting_window: 'continue' })
      const plain = await other.get(login.link)
      expect(asksForNumber(plain)).to.equal(false)
      await h.put(CAREFUL)
      await expectAsked(h, login, await confirm(plain), 400)
      await h.put({ waiting_window: 'continue' })
      expectMode(await confirm(asked, wrongNumber(number)), 200, 'verified')
      await expectResumed(h, login, await windowOf(h, login).goOn())
      await h.put(CAREFUL)
    })
  })
})

describe('Whoever has the mailbox and sees no window that waits', () => {
  const h = suiteHarness({ settings: CAREFUL })

  const disown = async (login: BlockedLogin, agent = createUserAgent()) =>
    answering(h, agent)(await agent.get(login.link), { action: 'disown' })

  it('confirms nothing, ends that login and its link, and it is audited once', async () => {
    const login = await blockedLogin(h)
    const agent = createUserAgent()
    const page = await agent.get(login.link)
    const answer = await answering(h, agent)(page, { action: 'disown' })
    expectMode(answer, 200, 'disowned')
    expect(setsSession(answer)).to.equal(false)
    expect(await isVerified(h, login.user)).to.equal(false)
    expect(await windowOf(h, login).status()).to.equal('ended')
    await expectEnded(h, login)
    for (const browser of [agent, login.agent]) expectExpired(await browser.get(login.link))
    for (const action of ['disown', 'confirm', 'confirm_only']) {
      expectExpired(
        await answering(h, agent)(page, { action, number: numberOn(login.blocked) ?? '' }),
      )
    }
    const wanted = { type: 'email_login_disowned', accountId: login.user.id } as const
    const events = await eventsOf(h, wanted)
    expect(events.map(({ reason, clientId }) => [reason, clientId])).to.deep.equal([
      ['no_such_window', 'app'],
    ])
  })

  it('lets no window of that account wait for an hour; its mail comes, and its link only confirms', async () => {
    const first = await blockedLogin(h)
    expectMode(await disown(first), 200, 'disowned')
    const { user } = first
    for (const isHere of [true, false]) {
      const login = await blockedLogin(h, { user })
      expect(login.blocked.text).to.not.include('data-status-url')
      expect(numberOn(login.blocked)).to.equal(undefined)
      const shown = await windowOf(h, login).reload()
      expectMode(shown, 200, 'blocked')
      expect(shown.text).to.not.include('data-status-url')
      if (isHere) continue
      const agent = createUserAgent()
      const page = await agent.get(login.link)
      expect(asksForNumber(page)).to.equal(false)
      expectMode(await answering(h, agent)(page, { action: 'confirm' }), 200, 'verified')
      expectMode(await windowOf(h, login).goOn(), 400, 'ended')
      expect(sessionId(h, login.agent)).to.equal(undefined)
    }
  })

  it('is held in the browser that logged in too, until the hour is over', async () => {
    const first = await blockedLogin(h)
    await disown(first)
    const held = await blockedLogin(h, { user: first.user })
    const stranger = await blockedLogin(h)
    expect(numberOn(stranger.blocked), 'of another account').to.not.equal(undefined)
    await moveTime(HOUR_MS)
    const later = await blockedLogin(h, { user: first.user })
    expect(numberOn(later.blocked)).to.not.equal(undefined)
    expectMode(await held.agent.get(held.link), 200, 'verified')
    expect(sessionId(h, held.agent)).to.equal(undefined)
  })

  it('may say so from an old page, whatever is set by then', async () => {
    for (const waiting_window of ['continue', 'off']) {
      const login = await blockedLogin(h)
      const agent = createUserAgent()
      const page = await agent.get(login.link)
      await h.put({ waiting_window })
      expectMode(await answering(h, agent)(page, { action: 'disown' }), 200, 'disowned')
      expect(await isVerified(h, login.user)).to.equal(false)
      await expectEnded(h, login)
      await h.put(CAREFUL)
    }
  })
})
