import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { createAltcha } from '../../examples/captcha/altcha.ts'
import { describeInChromium } from '../support/chromium.ts'
import { shapeOf } from '../support/observe.ts'
import type { Person } from '../support/person.ts'
import { createUserAgent } from '../support/user-agent.ts'
import {
  blockedIn,
  inMode,
  keptWindow,
  suiteBrowserHarness,
} from '../browser/person-in-chromium.ts'

const SUBMIT = 'form:has(altcha-widget) > button[type=submit]'

describeInChromium('ALTCHA, as in the example [full]', (browser) => {
  const altcha = createAltcha()
  const h = suiteBrowserHarness({ flows: altcha.options, around: altcha.around })
  const page = keptWindow(browser)
  const complaints: string[] = []

  before(() => {
    page().on('console', (message) => {
      const { url } = message.location()
      const isElsewhere = /\/(favicon\.ico|login\?interaction=[\w-]+)$/.test(url)
      if (message.type() === 'error' && !isElsewhere) complaints.push(`${url} ${message.text()}`)
    })
    page().on('pageerror', (error) => complaints.push(String(error)))
  })
  beforeEach(() => complaints.splice(0))

  /** Ticks the box of the widget, and waits until the work is done. */
  async function solve(window: Page): Promise<string> {
    await window.click('altcha-widget label')
    await window.waitForSelector('altcha-widget [data-state=verified]', { timeout: 60_000 })
    return window.inputValue('input[name=altcha]')
  }

  async function solution(): Promise<string> {
    await page().goto(`${h.oauthUrl}/forgot-password`)
    return solve(page())
  }

  const post = (path: string, form: Record<string, string>, headers = {}) =>
    createUserAgent().post(`${h.oauthUrl}/${path}`, form, headers)

  it('shows under our policy, is solved, and the mail comes', async () => {
    const ann = await h.addVerified()
    await page().goto(`${h.oauthUrl}/forgot-password`)
    await page().fill('input[name=identifier]', ann.username)
    await solve(page())
    await page().click(SUBMIT)
    await inMode(page(), 'sent')
    await ann.mail(1)
    expect(complaints).to.deep.equal([])
  })

  it('keeps back who did not solve it; whoever gets around that sees the same page, and gets no mail', async () => {
    const { username } = await h.addVerified()
    await page().goto(`${h.oauthUrl}/forgot-password`)
    await page().fill('input[name=identifier]', username)
    await page().click(SUBMIT)
    expect(await page().locator('altcha-widget input:invalid').count()).to.equal(1)
    const honest = await post('forgot-password', { identifier: username, altcha: await solution() })
    const decoded = ['not JSON', '{}', 'null', '{"challenge":{"parameters":1}}']
    const wrong = ['', ...decoded.map((text) => btoa(text))]
    await h.withoutJobs(async () => {
      for (const more of [{}, ...wrong.map((altcha) => ({ altcha }))]) {
        const answer = await post('forgot-password', { identifier: username, ...more })
        expect(shapeOf(answer)).to.deep.equal(shapeOf(honest))
      }
    })
  })

  it('takes a solution once, at either form, also of two posts in one moment (RATE-17)', async () => {
    const [verified, other] = [await h.addVerified(), await h.addVerified()]
    const unverified = await h.addUnverified()
    const { username } = unverified
    const altcha = await solution()
    const evil = { origin: 'https://evil.example' }
    const refused = await post('forgot-password', { identifier: verified.username, altcha }, evil)
    expect(refused.mode).to.equal('refused')
    const askFor = ({ username }: Person) =>
      post('forgot-password', { identifier: username, altcha })
    const sent = await Promise.all([verified, other].map(askFor))
    expect(sent.map(({ mode }) => mode)).to.deep.equal(['sent', 'sent'])
    await h.isIdle()
    expect(verified.mailCount() + other.mailCount()).to.equal(1)
    // Another spelling of it is another text.
    const json = Buffer.from(altcha, 'base64').toString()
    const spelled = Buffer.from(json.replace(/"signature":"(\w+)"/, (all) => all.toUpperCase()))
    await h.withoutJobs(async () => {
      for (const again of [altcha, `${altcha}=`, btoa(` ${json}`), spelled.toString('base64')]) {
        await post('forgot-password', { identifier: verified.username, altcha: again })
        const answer = await post('resend-verification', { username, altcha: again })
        expect([answer.status, answer.mode]).to.deep.equal([200, 'sent'])
      }
    })
    await post('resend-verification', { username, altcha: await solution() })
    await unverified.mail(1)
  })

  it('shows beside a login that waits, which goes on after another mail, by its code', async () => {
    const login = await blockedIn(h, page())
    await page().click('summary')
    await solve(page())
    await page().click(SUBMIT)
    await inMode(page(), 'sent')
    await login.reads(2)
    await login.types()
    await login.isAtApp()
    expect(complaints).to.deep.equal([])
  })

  it('says that it needs scripts, in the language of the page, where there are none', async () => {
    const context = await browser().newContext({ javaScriptEnabled: false, locale: 'de' })
    const window = await context.newPage()
    await window.goto(`${h.oauthUrl}/forgot-password`)
    expect(await window.innerText('.refusal')).to.match(/^Dieses Formular braucht JavaScript\./)
    await context.close()
  })
})

describeInChromium('A widget with a button of its own [full]', (browser) => {
  const captcha = { html: '<button type="button" id="solve">Solve</button>' }
  const h = suiteBrowserHarness({
    flows: { captcha, beforeForgotPassword: () => 'allow' },
    settings: { resend_cooldown: '30s' },
  })
  const page = keptWindow(browser)

  it('leaves the countdown to the button that sends the form', async () => {
    await blockedIn(h, page())
    await page().click('summary')
    await page().waitForSelector('form > button[type=submit]:disabled')
    expect(await page().isEnabled('#solve')).to.equal(true)
  })
})
