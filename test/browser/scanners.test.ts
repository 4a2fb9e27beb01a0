import { expect } from 'chai'
import { describeInChromium } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import {
  blockedIn,
  keptWindow,
  personIn,
  suiteBrowserHarness,
  type PersonInChromium,
} from './person-in-chromium.ts'

/** What runs in each page that a scanner renders, once it is loaded, and sends nothing. */
const LOOKS: Record<string, string> = {
  'renders the page': '',
  'follows links and presses Enter by script': `document.querySelectorAll('a').forEach((a) => a.click())
    button?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true, cancelable: true }))`,
}

/** What sends the form. */
const SENDS: Record<string, string> = {
  'sends the form': 'form?.submit()',
  'asks the form to be sent': 'form?.requestSubmit()',
  'asks the form to be sent with its button': 'form?.requestSubmit(button)',
  'clicks the button by script': 'button?.click()',
  'makes up the events of a mouse': `for (const type of ['pointerdown', 'mousedown', 'pointerup', 'mouseup', 'click'])
    button?.dispatchEvent(new MouseEvent(type, { bubbles: true, cancelable: true }))`,
}

/** As often as a person would try: in the page of the link, and in the one that answers. */
const TRIES = 2
const inEachPage = (script: string) => `addEventListener('load', () => {
  const loads = Number(sessionStorage.loads ?? 0) + 1
  sessionStorage.loads = loads
  const [form] = document.forms
  if (loads > ${TRIES}) return
  const button = form?.querySelector('button')
  ${script}
})`

/** Renders the link with scripts, as a page in this mode; nothing comes of it, also once the last form that they sent is answered. */
async function scan(person: PersonInChromium, mode: 'elsewhere' | 'confirm', script: string) {
  const { window } = person
  const running = await window.addInitScript({ content: inEachPage(script) })
  await person.opensLink()
  const sends = mode === 'confirm' && Object.values(SENDS).includes(script)
  const loads = sends ? TRIES + 1 : 1
  await window.waitForFunction((loads) => Number(sessionStorage['loads']) === loads, loads)
  await person.sees(mode === 'confirm' ? 'not-me' : 'verify-email', mode)
  await person.getsNothing()
  await window.evaluate(() => sessionStorage.clear())
  await running.dispose()
}

describeInChromium('What scans a mail before its reader opens it', (browser) => {
  const h = suiteBrowserHarness({ settings: { email_link_confirmation: 'other_browser' } })
  const scanner = keptWindow(browser)
  const page = keptWindow(browser)

  it('verifies nothing, whatever it does, also in the browser of the login, and the person does afterwards [full]', async () => {
    const login = await blockedIn(h, page())
    for (const method of ['HEAD', 'GET', 'GET']) {
      await fetch(login.link, { method, redirect: 'manual' })
    }
    expect((await page().request.head(login.link)).status()).to.equal(403)
    for (const script of Object.values({ ...LOOKS, ...SENDS })) {
      await scan(login.in(scanner()), 'elsewhere', script)
    }
    await login.opensLink()
    await login.isAtApp()
  })

  it('disowns no mail, whatever it does, and the person does it afterwards (NOT-01, NOT-02) [full]', async () => {
    const user = await h.blockedLogin()
    const { link } = user
    const notMe = await user.notMeLink()
    const scanned = Object.assign(personIn(h, scanner(), user), { link: notMe })
    for (const script of Object.values({ ...LOOKS, ...SENDS })) {
      await scan(scanned, 'confirm', script)
    }
    expect(user.events('mail_reported')).to.deep.equal([])
    const person = personIn(h, page(), user)
    await person.opensLink(link)
    await person.sees('verify-email', 'elsewhere')
    await person.opensLink(notMe)
    await page().click('button[value=confirm]')
    await person.sees('not-me', 'stopped')
    expect(user.events('mail_reported')).to.have.length(1)
    await person.opensLink(link)
    await person.sees('verify-email', 'expired')
  })

  for (const action of ['prefetch', 'prerender']) {
    it(`is thrown away by the browser where it was a ${action}, and the click of the person finishes the login [full]`, async () => {
      const login = await blockedIn(h, page())
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
      await login.isAtApp()
      expect(opened()).to.have.length(2)
    })
  }
})
