import { expect } from 'chai'
import { blockedLogin } from '../support/blocked-login.ts'
import { eventually } from '../support/eventually.ts'
import { describeInChromium } from '../support/chromium.ts'
import { keptWindow } from './kept-window.ts'
import {
  confirmElsewhere,
  expectConfirmed,
  expectNothingHappened,
  inMode,
  startBrowserHarness,
  type BrowserHarness,
} from './login-in-chromium.ts'
import { notMeLink } from '../support/not-me.ts'
import { eventsOf } from '../support/observe.ts'
import { CLICK, LOOKS, scan, SENDS } from './scanner.ts'

describeInChromium('What scans a mail before its reader opens it [full]', (browser) => {
  let h: BrowserHarness
  const scanner = keptWindow(browser)
  const page = keptWindow(browser)

  before(async () => {
    h = await startBrowserHarness({ settings: { email_link_confirmation: 'other_browser' } })
  })
  after(() => h?.close())

  it('consumes nothing, whatever it does, and the person confirms afterwards', async () => {
    const login = await blockedLogin(h)
    for (const method of ['HEAD', 'GET', 'GET']) {
      await fetch(login.link, { method, redirect: 'manual' })
    }
    for (const script of Object.values({ ...LOOKS, ...SENDS })) {
      await scan(h, scanner(), login, script)
    }
    await confirmElsewhere(h, page(), login)
  })

  it('disowns no mail, whatever it does, and the person does it afterwards (NOT-01, NOT-02)', async () => {
    const { user, link } = await blockedLogin(h)
    const notMe = await notMeLink(h, user)
    for (const script of Object.values({ ...LOOKS, ...SENDS })) {
      await scan(h, scanner(), { user, link: notMe }, script)
    }
    expect(eventsOf(h, 'mail_disowned', user)).to.deep.equal([])
    await page().goto(link)
    await inMode(page(), 'confirm')
    await page().goto(notMe)
    await page().click('button[value=confirm]')
    await inMode(page(), 'stopped')
    expect(eventsOf(h, 'mail_disowned', user)).to.have.length(1)
    await page().goto(link)
    await inMode(page(), 'expired')
  })

  for (const action of ['prefetch', 'prerender']) {
    it(`is thrown away by the browser where it was a ${action}, and the person confirms afterwards`, async () => {
      const login = await blockedLogin(h)
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
      await inMode(page(), 'confirm')
      expect(opened()).to.have.length(2)
      await expectNothingHappened(h, page(), login.user)
      await page().click('button[value=confirm]')
      await expectConfirmed(h, page(), login.user)
    })
  }

  // Who did not log in is asked by both modes in the same way; who did, in `journeys.test.ts`.
  it('consumes nothing with email_link_confirmation=always, and the person confirms afterwards', async () => {
    await h.put({ email_link_confirmation: 'always' })
    const login = await blockedLogin(h)
    await scan(h, scanner(), login, CLICK)
    await confirmElsewhere(h, page(), login)
  })
})
