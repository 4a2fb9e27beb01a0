import { expect } from 'chai'
import { eventually } from '../support/eventually.ts'
import { describeInChromium } from '../support/chromium.ts'
import { keptWindow } from './kept-window.ts'
import {
  expectAtClient,
  inMode,
  logInAndWait,
  startBrowserHarness,
  type BrowserHarness,
} from './login-in-chromium.ts'
import { LOOKS, scan, SENDS } from './scanner.ts'
import { blockedLogin } from '../support/person.ts'

describeInChromium('What scans a mail before its reader opens it [full]', (browser) => {
  let h: BrowserHarness
  const scanner = keptWindow(browser)
  const page = keptWindow(browser)

  before(async () => {
    h = await startBrowserHarness({ settings: { email_link_confirmation: 'other_browser' } })
  })
  after(() => h?.close())

  it('verifies nothing, whatever it does, also in the browser of the login, and the person does afterwards', async () => {
    const login = await logInAndWait(h, page())
    for (const method of ['HEAD', 'GET', 'GET']) {
      await fetch(login.link, { method, redirect: 'manual' })
    }
    expect((await page().request.head(login.link)).status()).to.equal(403)
    for (const script of Object.values({ ...LOOKS, ...SENDS })) {
      await scan(h, scanner(), { ...login, mode: 'elsewhere' }, script)
    }
    await page().goto(login.link)
    await expectAtClient(h, page(), login)
  })

  it('disowns no mail, whatever it does, and the person does it afterwards (NOT-01, NOT-02)', async () => {
    const { user, link } = await blockedLogin(h)
    const notMe = await user.notMeLink()
    for (const script of Object.values({ ...LOOKS, ...SENDS })) {
      await scan(h, scanner(), { user, link: notMe, mode: 'confirm' }, script)
    }
    expect(user.events('mail_disowned')).to.deep.equal([])
    await page().goto(link)
    await inMode(page(), 'elsewhere')
    await page().goto(notMe)
    await page().click('button[value=confirm]')
    await inMode(page(), 'stopped')
    expect(user.events('mail_disowned')).to.have.length(1)
    await page().goto(link)
    await inMode(page(), 'expired')
  })

  for (const action of ['prefetch', 'prerender']) {
    it(`is thrown away by the browser where it was a ${action}, and the click of the person finishes the login`, async () => {
      const login = await logInAndWait(h, page())
      const before = h.requests.length
      await page().goto(h.callback)
      await page().setContent(`<a href="${login.link}">the link</a>`)
      await page().evaluate(
        ([name = '', url = '']) => {
          const rules = document.createElement('script')
          rules.type = 'speculationrules'
          rules.textContent = JSON.stringify({ [name]: [{ urls: [url], eagerness: 'immediate' }] })
          document.head.append(rules)
        },
        [action, login.link],
      )
      const opened = () =>
        h.requests
          .slice(before)
          .filter((request) => request.startsWith('GET /oauth2/verify-email?'))
      await eventually('the link is fetched ahead', () => opened().length === 1)
      await page().click('a')
      await expectAtClient(h, page(), login)
      expect(opened()).to.have.length(2)
    })
  }
})
