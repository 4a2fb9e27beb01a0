import { expect } from 'chai'
import type { BrowserContext, Page } from 'playwright-core'
import { blockedLogin, type BlockedLogin } from '../support/blocked-login.ts'
import { describeInChromium } from '../support/chromium.ts'
import {
  expectAtClient,
  expectNothingHappened,
  hasSession,
  logInAndWait,
  modeOf,
  startBrowserHarness,
  type BrowserHarness,
} from './login-in-chromium.ts'

/** What runs in each page that a scanner renders, once it is loaded. */
const LOOKS: Record<string, string> = {
  'renders the page': '',
  'follows links and presses Enter by script': `document.querySelectorAll('a').forEach((a) => a.click())
    button.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }))`,
}
const CLICK = 'button.click()'
const SENDS: Record<string, string> = {
  'sends the form': 'form.submit()',
  'asks the form to be sent': 'form.requestSubmit()',
  'asks the form to be sent with its button': 'form.requestSubmit(button)',
  'clicks the button by script': CLICK,
  'makes up the events of a mouse': `for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'])
    button.dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true }))`,
}

/** At most as often as a person would try. */
const scannerScript = (action: string) => `addEventListener('load', () => {
  const loads = Number(sessionStorage.loads ?? 0) + 1
  sessionStorage.loads = loads
  const [form] = document.forms
  if (!form || loads > 2) return
  const button = form.querySelector('button')
  ${action}
})`

describeInChromium('What scans a mail before its reader opens it (D14)', (browser) => {
  let h: BrowserHarness
  let scanner: BrowserContext
  let context: BrowserContext
  let page: Page

  before(async () => {
    h = await startBrowserHarness()
    scanner = await browser().newContext()
  })
  after(() => h.close())

  async function open(options: { javaScriptEnabled?: boolean } = {}) {
    context = await browser().newContext(options)
    page = await context.newPage()
  }
  afterEach(async () => {
    h.forgetsFetchUser = false
    await context.close()
  })

  /** Renders the link with scripts; nothing comes of it, also once the answer to the form is there. */
  async function scan({ link, user }: Pick<BlockedLogin, 'link' | 'user'>, script: string) {
    const rendered = await scanner.newPage()
    await rendered.addInitScript({ content: scannerScript(script) })
    await rendered.goto(link)
    const least = Object.values(SENDS).includes(script) ? 2 : 1
    await rendered.waitForFunction((least) => Number(sessionStorage['loads']) >= least, least)
    expect(await modeOf(rendered), script).to.equal('confirm')
    await expectNothingHappened(h, rendered, user)
    await rendered.close()
  }

  /** The link in a browser that did not log in, where somebody presses the button. */
  async function confirmElsewhere({ link, user }: Pick<BlockedLogin, 'link' | 'user'>) {
    await page.goto(link)
    expect(await modeOf(page)).to.equal('confirm')
    await expectNothingHappened(h, page, user)
    await page.click('button[value=confirm]')
  }

  async function expectVerifiedElsewhere({ user }: Pick<BlockedLogin, 'user'>) {
    expect(await modeOf(page)).to.equal('verified')
    expect((await h.users.findById(user.id))?.emailVerified).to.equal(true)
    expect(await hasSession(h, page)).to.equal(false)
  }

  for (const mode of ['other_browser', 'always']) {
    describe(`with email_link_confirmation=${mode}`, () => {
      before(() => h.put({ email_link_confirmation: mode }))

      it('consumes nothing, whatever it does, and the person confirms afterwards', async () => {
        const login = await blockedLogin(h)
        for (const method of ['HEAD', 'GET', 'GET']) {
          await fetch(login.link, { method, redirect: 'manual' })
        }
        for (const script of Object.values({ ...LOOKS, ...SENDS })) await scan(login, script)
        await open()
        await confirmElsewhere(login)
        await expectVerifiedElsewhere(login)
      })

      it('is seen through where its clicks by script count as a gesture', async () => {
        const login = await blockedLogin(h)
        const rendered = await scanner.newPage()
        for (const script of ['form button', 'form']) {
          await rendered.goto(login.link)
          const answered = rendered.waitForNavigation()
          await rendered.evaluate((selector) => {
            const element = document.querySelector(selector)
            if (element instanceof HTMLFormElement) {
              element.requestSubmit(element.querySelector('button'))
            } else if (element instanceof HTMLElement) element.click()
          }, script)
          await answered
          expect(await modeOf(rendered), script).to.equal('confirm')
          await expectNothingHappened(h, rendered, login.user)
        }
        const answered = rendered.waitForNavigation()
        await rendered.evaluate(() => {
          document.querySelector<HTMLElement>('input[name=tick]')?.click()
          document.querySelector<HTMLElement>('form button')?.click()
        })
        await answered
        expect(await modeOf(rendered), 'tick').to.equal('confirm')
        await expectNothingHappened(h, rendered, login.user)
        await rendered.close()
        await open()
        await confirmElsewhere(login)
        await expectVerifiedElsewhere(login)
      })

      it('leaves the person’s button good where scripts are off', async () => {
        const login = await blockedLogin(h)
        await scan(login, CLICK)
        await open({ javaScriptEnabled: false })
        await confirmElsewhere(login)
        await expectVerifiedElsewhere(login)
      })

      it('leaves one press good in a browser that does not tell who pressed, with scripts', async () => {
        const login = await blockedLogin(h)
        h.forgetsFetchUser = true
        await scan(login, CLICK)
        await open()
        await confirmElsewhere(login)
        await expectVerifiedElsewhere(login)
      })

      it('leaves a tick and a press good in such a browser where scripts are off', async () => {
        const login = await blockedLogin(h)
        h.forgetsFetchUser = true
        await scan(login, CLICK)
        await open({ javaScriptEnabled: false })
        await confirmElsewhere(login)
        expect(await modeOf(page)).to.equal('confirm')
        await expectNothingHappened(h, page, login.user)
        await page.click('button[value=confirm]')
        await expectNothingHappened(h, page, login.user)
        await page.check('input[name=tick]')
        await page.click('button[value=confirm]')
        await expectVerifiedElsewhere(login)
      })
    })
  }

  it('lets the browser that logged in through at once with other_browser', async () => {
    await h.put({ email_link_confirmation: 'other_browser' })
    await open()
    const login = await logInAndWait(h, page)
    const opened = await context.newPage()
    await opened.goto(login.link)
    await expectAtClient(h, opened, login)
  })

  it('asks the browser that logged in too with always, and goes on to the client', async () => {
    await h.put({ email_link_confirmation: 'always' })
    await open()
    const login = await logInAndWait(h, page)
    const opened = await context.newPage()
    await opened.goto(login.link)
    expect(await modeOf(opened)).to.equal('confirm')
    await expectNothingHappened(h, opened, login.user)
    await opened.click('button[value=confirm]')
    await expectAtClient(h, opened, login)
  })
})
