import { expect } from 'chai'
import type { Page, Request } from 'playwright-core'
import { describeInChromium } from '../support/chromium.ts'
import { keptWindow } from './kept-window.ts'
import {
  answerTo,
  confirmElsewhere,
  expectAtClient,
  hasSession,
  inMode,
  logInAndWait,
  signIn,
  startBrowserHarness,
  type BrowserHarness,
  type LoginInWindow,
} from './login-in-chromium.ts'

const MINUTE_MS = 60_000
/** After so long the window asks again. */
const REST_MS = 2_000
const SLOW = { offline: false, latency: 400, downloadThroughput: -1, uploadThroughput: -1 }
const PRESS_MEANWHILE = `
  new MutationObserver(() => setTimeout(() => document.querySelector('form.waiting button').click(), 100))
    .observe(document.querySelector('[role=status]'), { childList: true })`
const CAN_BE_HIDDEN = `
  Object.defineProperty(document, 'hidden', { get: () => 'isHidden' in document })
  Object.defineProperty(document, 'visibilityState', { get: () => document.hidden ? 'hidden' : 'visible' })`

/** Its script has put it into the address bar. */
async function addressOf(page: Page): Promise<string> {
  await page.waitForURL('**/verify-email/waiting?*')
  return page.url()
}

describeInChromium('The window that logged in [full]', (browser) => {
  let h: BrowserHarness
  const page = keptWindow(browser)
  const other = keptWindow(browser)

  before(async () => {
    h = await startBrowserHarness({ settings: { email_link_confirmation: 'other_browser' } })
    await page().clock.install()
  })
  after(() => h?.close())

  /** The link is confirmed in another browser, and the window asks again. */
  async function confirm(login: Pick<LoginInWindow, 'link' | 'user'>) {
    await confirmElsewhere(h, other(), login)
    await page().clock.fastForward(REST_MS)
  }

  const posts = () =>
    h.requests.filter((line) => /^POST .*\/verify-email\/waiting/.test(line)).length

  it('goes on once, though somebody presses its button while it does', async () => {
    const login = await logInAndWait(h, page())
    const network = await page().context().newCDPSession(page())
    await network.send('Network.enable')
    await network.send('Network.emulateNetworkConditions', SLOW)
    await page().evaluate(PRESS_MEANWHILE)
    const before = posts()
    await confirm(login)
    await expectAtClient(h, page(), login)
    await network.detach()
    expect(posts() - before).to.equal(1)
    expect(await hasSession(h, page())).to.equal(true)
  })

  it('goes on once somebody else verified the account, as support does', async () => {
    const login = await logInAndWait(h, page())
    const { id, email = '' } = login.user
    expect(await h.users.markEmailVerified(id, email)).to.equal(true)
    await page().clock.fastForward(REST_MS)
    await expectAtClient(h, page(), login)
    expect(await hasSession(h, page())).to.equal(true)
  })

  it('goes on though another form of the page was just sent, into another tab', async () => {
    const login = await logInAndWait(h, page())
    const [beside] = await Promise.all([
      page().context().waitForEvent('page'),
      page().click('form[action$="/resend-verification"] button', { modifiers: ['Control'] }),
    ])
    await inMode(beside, 'sent')
    await beside.close()
    await confirm(login)
    await expectAtClient(h, page(), login)
  })

  it('does so beside the code that the other browser gets, where links are not to be confirmed', async () => {
    await h.put({ email_link_confirmation: 'off' })
    const login = await logInAndWait(h, page())
    await other().goto(login.link)
    await expectAtClient(h, other(), login)
    await page().clock.fastForward(REST_MS)
    await expectAtClient(h, page(), login)
    await h.put({ email_link_confirmation: 'other_browser' })
  })

  it('goes on to a client that wants its answer posted', async () => {
    const login = await logInAndWait(h, page(), { response_mode: 'form_post' })
    await confirm(login)
    await page().waitForURL(h.callback)
    const answer = await page().textContent('body')
    const tokens = await h.party.exchange(login.request, `${h.callback}?${answer}`)
    expect(tokens.claims()?.sub).to.equal(login.user.id)
  })

  it('waits on after a reload', async () => {
    const login = await logInAndWait(h, page())
    await page().reload()
    await inMode(page(), 'blocked')
    await confirm(login)
    await expectAtClient(h, page(), login)
  })

  it('waits on after another link was asked for, and goes on with that', async () => {
    const login = await logInAndWait(h, page())
    await page().click('form[action$="/resend-verification"] button')
    await inMode(page(), 'sent')
    const { link } = await h.mail.mailTo(login.user.email ?? '', 2)
    await confirm({ ...login, link })
    await expectAtClient(h, page(), login)
  })

  it('is one: of two that show the same login, the second says that it went on, and may be closed', async () => {
    const login = await logInAndWait(h, page())
    const same = await page().context().newPage()
    const address = await addressOf(page())
    await same.goto(address)
    await inMode(same, 'blocked')
    await confirm(login)
    const ends = [page(), same].map(async (window) => {
      await window.waitForFunction(
        (callback) =>
          location.href.startsWith(callback) ||
          document.querySelector('main:is([data-mode=signed_in], [data-mode=continued])') !== null,
        h.callback,
      )
      return window.url().startsWith(h.callback)
    })
    const [isFirst, isSecond] = await Promise.all(ends)
    expect(isFirst).to.equal(!isSecond)
    await expectAtClient(h, isFirst ? page() : same, login)
    const second = isFirst ? same : page()
    // It may have asked before the cookie of the first one came.
    await second.goto(address)
    await inMode(second, 'signed_in')
  })

  it('tells another browser nothing, confirmed or not, and goes on itself', async () => {
    const login = await logInAndWait(h, page())
    const address = await addressOf(page())
    const statusUrl = address.replace('/waiting?', '/status?')
    const seen = async () => {
      await other().goto(address)
      await inMode(other(), 'ended')
      expect(await hasSession(h, other())).to.equal(false)
      await other().goto(statusUrl)
      return other().textContent('body')
    }
    expect(await seen()).to.equal('{"status":"ended"}')
    await confirm(login)
    expect(await seen()).to.equal('{"status":"ended"}')
    await expectAtClient(h, page(), login)
    expect(await seen()).to.equal('{"status":"ended"}')
  })

  it('stops trying where the verification was taken back, and its button still works', async () => {
    const login = await logInAndWait(h, page())
    const before = posts()
    await page().context().setOffline(true)
    await confirm(login)
    await h.changeUser(login.user, { emailVerified: false })
    await page().context().setOffline(false)
    for (let tries = 0; tries < 3; tries += 1) {
      await answerTo(page(), () => page().clock.fastForward(MINUTE_MS))
    }
    await page().clock.fastForward(REST_MS)
    await page().locator('[role=status]', { hasText: 'stopped waiting' }).waitFor()
    expect(posts() - before).to.equal(3)

    await h.changeUser(login.user, { emailVerified: true })
    await page().click('form.waiting button')
    await expectAtClient(h, page(), login)
  })

  it('gets nothing once its cookie is lost, and a login from the start is good', async () => {
    const login = await logInAndWait(h, page())
    await page().context().clearCookies({ name: 'account_flows_browser' })
    await confirm(login)
    await inMode(page(), 'ended')
    expect(await hasSession(h, page())).to.equal(false)
    const again = await h.party.begin()
    await signIn(page(), again, login.user.username)
    await expectAtClient(h, page(), { ...login, request: again })
  })

  describe('while time passes', () => {
    let login: LoginInWindow
    const asked: Request[] = []

    before(async () => {
      await page().addInitScript({ content: CAN_BE_HIDDEN })
      page().on('request', (request) => {
        if (request.url().includes('/verify-email/status?')) asked.push(request)
      })
    })
    beforeEach(async () => {
      login = await logInAndWait(h, page())
      await page().clock.pauseAt((await page().evaluate(() => Date.now())) + 1000)
    })
    afterEach(() => page().clock.resume())

    const show = (isShown: boolean) =>
      page().evaluate((isShown) => {
        if (isShown) Reflect.deleteProperty(document, 'isHidden')
        else Reflect.set(document, 'isHidden', true)
        document.dispatchEvent(new Event('visibilitychange'))
      }, isShown)

    /** How many questions the window asked meanwhile, all of which are answered then. */
    async function asksDuring(happens: () => Promise<unknown>): Promise<number> {
      const before = asked.length
      await happens()
      const answers = asked.slice(before).map(async (each) => (await each.response())?.finished())
      await Promise.all(answers)
      return answers.length
    }

    /** Lets so many seconds pass, one by one; answers how many questions the window asked in each. */
    async function secondsPass(count: number): Promise<number[]> {
      const counts: number[] = []
      for (let second = 0; second < count; second += 1) {
        counts.push(await asksDuring(() => page().clock.runFor(1000)))
      }
      return counts
    }

    const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0)

    it('asks at most every two seconds, less often after ten minutes, and not at all after the lifetime', async () => {
      const first = await secondsPass(40)
      expect(sum(first)).to.be.within(2, 20)
      for (const [index, count] of first.entries()) {
        expect(count + (first[index + 1] ?? 0)).to.be.at.most(1)
      }
      await asksDuring(() => page().clock.fastForward(10 * MINUTE_MS))
      expect(sum(await secondsPass(40))).to.be.within(1, 5)
      await asksDuring(() => page().clock.fastForward(24 * 60 * MINUTE_MS))
      const none = await asksDuring(async () => {
        await page().clock.fastForward(10 * MINUTE_MS)
        await secondsPass(20)
      })
      expect(none).to.equal(0)
      await inMode(page(), 'blocked')
      await confirmElsewhere(h, other(), login)
      await page().click('form.waiting button')
      await expectAtClient(h, page(), login)
    })

    it('asks nothing while it cannot be seen, and goes on when it can', async () => {
      await asksDuring(() => show(false))
      expect(sum(await secondsPass(20))).to.equal(0)
      await confirmElsewhere(h, other(), login)
      expect(sum(await secondsPass(20))).to.equal(0)
      await show(true)
      await expectAtClient(h, page(), login)
    })

    it('asks no more often for being hidden and shown all the time', async () => {
      let asks = 0
      for (let times = 0; times < 10; times += 1) {
        await asksDuring(() => show(false))
        asks += await asksDuring(() => show(true))
      }
      expect(asks).to.be.at.most(1)
      await confirmElsewhere(h, other(), login)
      await page().clock.fastForward(REST_MS)
      await expectAtClient(h, page(), login)
    })
  })
})
