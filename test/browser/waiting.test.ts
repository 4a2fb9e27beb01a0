import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { describeInChromium } from '../support/chromium.ts'
import {
  expectAtClient,
  hasSession,
  logInAndWait,
  modeOf,
  signIn,
  startBrowserHarness,
  type BrowserHarness,
  type LoginInWindow,
} from './login-in-chromium.ts'

const MINUTE_MS = 60_000
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

describeInChromium('The window that logged in (D15)', (browser) => {
  let h: BrowserHarness
  let contexts: BrowserContext[] = []

  before(async () => {
    h = await startBrowserHarness({ settings: { email_link_confirmation: 'other_browser' } })
  })
  after(() => h.close())
  afterEach(async () => {
    await Promise.all(contexts.map((context) => context.close()))
    contexts = []
  })

  async function openWindow(options: BrowserContextOptions = {}): Promise<Page> {
    const context = await browser().newContext(options)
    contexts.push(context)
    return context.newPage()
  }

  /** Opens the link in another browser, and presses its button. */
  async function confirmElsewhere(link: string): Promise<Page> {
    const other = await openWindow()
    await other.goto(link)
    await other.click('button[value=confirm]')
    expect(await modeOf(other)).to.equal('verified')
    expect(await hasSession(h, other)).to.equal(false)
    return other
  }

  const posts = () =>
    h.requests.filter((line) => /^POST .*\/verify-email\/waiting/.test(line)).length
  const polls = () => h.requests.filter((line) => line.includes('/verify-email/status?')).length

  it('goes on to the client by itself, once the link is confirmed in another browser', async () => {
    const page = await openWindow()
    const login = await logInAndWait(h, page)
    await confirmElsewhere(login.link)
    const confirmedAt = performance.now()
    await page.waitForURL(`${h.callback}?**`)
    const seconds = (performance.now() - confirmedAt) / 1000
    console.log(`      at the client ${seconds.toFixed(1)} s after the answer in the other browser`)
    await expectAtClient(h, page, login)
    expect(await hasSession(h, page)).to.equal(true)
  })

  it('goes on once, though somebody presses its button while it does', async () => {
    const page = await openWindow()
    const login = await logInAndWait(h, page)
    const network = await page.context().newCDPSession(page)
    await network.send('Network.enable')
    await network.send('Network.emulateNetworkConditions', SLOW)
    await page.evaluate(PRESS_MEANWHILE)
    const before = posts()
    await confirmElsewhere(login.link)
    await expectAtClient(h, page, login)
    expect(posts() - before).to.equal(1)
    expect(await hasSession(h, page)).to.equal(true)
  })

  it('goes on though another form of the page was just sent, into another tab', async () => {
    const page = await openWindow()
    const login = await logInAndWait(h, page)
    const [beside] = await Promise.all([
      page.context().waitForEvent('page'),
      page.click('form[action$="/resend-verification"] button', { modifiers: ['Control'] }),
    ])
    await beside.waitForSelector('main[data-mode=sent]')
    await beside.close()
    await confirmElsewhere(login.link)
    await expectAtClient(h, page, login)
  })

  it('does so beside the code that the other browser gets, where links are not to be confirmed', async () => {
    await h.put({ email_link_confirmation: 'off' })
    const page = await openWindow()
    const login = await logInAndWait(h, page)
    const other = await openWindow()
    await other.goto(login.link)
    await expectAtClient(h, other, login)
    await expectAtClient(h, page, login)
    await h.put({ email_link_confirmation: 'other_browser' })
  })

  it('goes on to a client that wants its answer posted', async () => {
    const page = await openWindow()
    const login = await logInAndWait(h, page, { response_mode: 'form_post' })
    await confirmElsewhere(login.link)
    await page.waitForURL(h.callback)
    const answer = await page.textContent('body')
    const tokens = await h.party.exchange(login.request, `${h.callback}?${answer}`)
    expect(tokens.claims()?.sub).to.equal(login.user.id)
  })

  it('goes on at the press of a button where scripts are off, and says before that it is too early', async () => {
    const page = await openWindow({ javaScriptEnabled: false })
    const login = await logInAndWait(h, page)
    await page.click('form.waiting button')
    expect(await modeOf(page)).to.equal('blocked')
    expect(await hasSession(h, page)).to.equal(false)
    await confirmElsewhere(login.link)
    await page.click('form.waiting button')
    await expectAtClient(h, page, login)
  })

  it('waits on after a reload', async () => {
    const page = await openWindow()
    const login = await logInAndWait(h, page)
    await page.reload()
    expect(await modeOf(page)).to.equal('blocked')
    await confirmElsewhere(login.link)
    await expectAtClient(h, page, login)
  })

  it('waits on after another link was asked for, and goes on with that', async () => {
    const page = await openWindow()
    const login = await logInAndWait(h, page)
    await page.click('form[action$="/resend-verification"] button')
    expect(await modeOf(page)).to.equal('sent')
    const { link } = await h.mail.mailTo(login.user.email ?? '', 2)
    await confirmElsewhere(link)
    await expectAtClient(h, page, login)
  })

  it('says that it may be closed, where the link was opened beside it', async () => {
    const page = await openWindow()
    const login = await logInAndWait(h, page)
    const beside = await page.context().newPage()
    await beside.goto(login.link)
    await expectAtClient(h, beside, login)
    await page.waitForSelector('main[data-mode=signed_in]')
  })

  it('is one: of two that show the same login, the second says that it may be closed', async () => {
    const page = await openWindow()
    const login = await logInAndWait(h, page)
    const same = await page.context().newPage()
    await same.goto(await addressOf(page))
    expect(await modeOf(same)).to.equal('blocked')
    await confirmElsewhere(login.link)
    const ends = [page, same].map(async (window) => {
      await window.waitForFunction(
        (callback) =>
          location.href.startsWith(callback) ||
          document.querySelector('main[data-mode=signed_in]') !== null,
        h.callback,
      )
      return window.url().startsWith(h.callback)
    })
    const [isFirst, isSecond] = await Promise.all(ends)
    expect(isFirst).to.equal(!isSecond)
    await expectAtClient(h, isFirst ? page : same, login)
  })

  it('tells another browser nothing, confirmed or not, and goes on itself', async () => {
    const page = await openWindow()
    const login = await logInAndWait(h, page)
    const address = await addressOf(page)
    const statusUrl = address.replace('/waiting?', '/status?')
    const other = await openWindow()
    const seen = async () => {
      await other.goto(address)
      expect(await modeOf(other)).to.equal('ended')
      expect(await hasSession(h, other)).to.equal(false)
      await other.goto(statusUrl)
      return other.textContent('body')
    }
    expect(await seen()).to.equal('{"status":"ended"}')
    await confirmElsewhere(login.link)
    expect(await seen()).to.equal('{"status":"ended"}')
    await expectAtClient(h, page, login)
    expect(await seen()).to.equal('{"status":"ended"}')
  })

  it('stops trying where the verification was taken back, and its button still works', async () => {
    const page = await openWindow()
    const login = await logInAndWait(h, page)
    const posts = () =>
      h.requests.filter((line) => line.startsWith('POST') && line.includes('/verify-email/waiting'))
    const before = posts().length
    await page.context().setOffline(true)
    await confirmElsewhere(login.link)
    await h.changeUser(login.user, { emailVerified: false })
    await page.context().setOffline(false)
    await page.locator('[role=status]', { hasText: 'stopped waiting' }).waitFor()
    expect(posts().length - before).to.equal(3)

    await h.changeUser(login.user, { emailVerified: true })
    await page.click('form.waiting button')
    await expectAtClient(h, page, login)
  })

  it('gets nothing once its cookie is lost, and a login from the start is good', async () => {
    const page = await openWindow()
    const login = await logInAndWait(h, page)
    await page.context().clearCookies({ name: 'account_flows_browser' })
    await confirmElsewhere(login.link)
    await page.waitForSelector('main[data-mode=ended]')
    expect(await hasSession(h, page)).to.equal(false)
    const again = await h.party.begin()
    await signIn(page, again, login.user.username)
    await expectAtClient(h, page, { ...login, request: again })
  })

  describe('while time passes', () => {
    let page: Page
    let login: LoginInWindow

    beforeEach(async () => {
      page = await openWindow()
      await page.clock.install()
      await page.addInitScript({ content: CAN_BE_HIDDEN })
      login = await logInAndWait(h, page)
      await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1000)
    })

    const show = (isShown: boolean) =>
      page.evaluate((isShown) => {
        if (isShown) Reflect.deleteProperty(document, 'isHidden')
        else Reflect.set(document, 'isHidden', true)
        document.dispatchEvent(new Event('visibilitychange'))
      }, isShown)

    /** Lets so many seconds pass, one by one; answers how many questions the window asked in each. */
    async function secondsPass(count: number): Promise<number[]> {
      const asked: number[] = []
      for (let second = 0; second < count; second += 1) {
        const before = polls()
        await page.clock.runFor(1000)
        await sleep(20)
        asked.push(polls() - before)
      }
      return asked
    }

    const sum = (counts: number[]) => counts.reduce((total, count) => total + count, 0)

    it('asks at most every two seconds, less often after ten minutes, and not at all after the lifetime', async () => {
      const first = await secondsPass(40)
      expect(sum(first)).to.be.within(2, 20)
      for (const [index, count] of first.entries()) {
        expect(count + (first[index + 1] ?? 0)).to.be.at.most(1)
      }
      await page.clock.fastForward(10 * MINUTE_MS)
      await sleep(300)
      expect(sum(await secondsPass(40))).to.be.within(1, 5)
      await page.clock.fastForward(24 * 60 * MINUTE_MS)
      await sleep(300)
      const before = polls()
      await page.clock.fastForward(10 * MINUTE_MS)
      expect(sum(await secondsPass(20))).to.equal(0)
      expect(polls()).to.equal(before)
      expect(await modeOf(page)).to.equal('blocked')
      await confirmElsewhere(login.link)
      await page.click('form.waiting button')
      await expectAtClient(h, page, login)
    })

    it('asks nothing while it cannot be seen, and goes on when it can', async () => {
      await show(false)
      await sleep(300)
      expect(sum(await secondsPass(20))).to.equal(0)
      await confirmElsewhere(login.link)
      expect(sum(await secondsPass(20))).to.equal(0)
      await show(true)
      await secondsPass(3)
      await expectAtClient(h, page, login)
    })

    it('asks no more often for being hidden and shown all the time', async () => {
      const before = polls()
      for (let times = 0; times < 10; times += 1) {
        await show(false)
        await show(true)
        await sleep(20)
      }
      expect(polls() - before).to.be.at.most(1)
      await confirmElsewhere(login.link)
      await secondsPass(4)
      await expectAtClient(h, page, login)
    })
  })
})
