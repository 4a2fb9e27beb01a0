import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Frame, Page } from 'playwright-core'
import { createViews } from '../../src/views/index.ts'
import { describeInChromium } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import { wrongCode } from '../support/person.ts'
import { moveTime } from '../support/time.ts'
import {
  blockedIn,
  keptWindow,
  personIn,
  startBrowserHarness,
  type BrowserHarness,
  type PersonInChromium,
} from './person-in-chromium.ts'

const GO_ON = '#waiting button'
const CANCEL = 'button[value=cancel]'
const OTHER_ACCOUNT = 'button[value=other_account]'
const RESEND = 'form[action$="/resend-verification"] button'
const DAYS_MS = 3 * 86_400_000

const PASTED = {
  'with blanks and a hyphen around and between': (code: string) =>
    ` ${code.slice(0, 2)} ${code.slice(2, 4)}-${code.slice(4)} `,
  'in the digits of another script': (code: string) =>
    code.replaceAll(/\d/g, (digit) => String.fromCodePoint(0x660 + Number(digit))),
}

function wordsIn(locale: string): Map<string, string> {
  const file = new URL(`../../views/locales/${locale}.json`, import.meta.url)
  return new Map(Object.entries(JSON.parse(readFileSync(file, 'utf8'))))
}

describeInChromium('The page that waits [full]', (browser) => {
  let h: BrowserHarness
  const windows = {
    'with scripts': keptWindow(browser),
    'without scripts': keptWindow(browser, { javaScriptEnabled: false }),
  }
  const other = keptWindow(browser)

  before(async () => {
    h = await startBrowserHarness({ settings: { email_link_confirmation: 'other_browser' } })
  })
  after(() => h?.close())

  const loginIn = (window: Page) => window.locator('#waiting input[name=login]').inputValue()
  const isCode = (url: string) => url.startsWith(h.callback) && url.includes('code=')
  const tabBeside = async (login: PersonInChromium) =>
    login.in(await login.window.context().newPage())

  /** The page of the login once more, as another tab, another browser or a reload shows it. */
  async function openAgain(window: Page, id: string) {
    await window.goto(`${h.oauthUrl}/verify-email/waiting?login=${id}`)
  }

  async function inAnotherTab(login: PersonInChromium) {
    const same = await tabBeside(login)
    await openAgain(same.window, await loginIn(login.window))
    await same.sees('verify-email', 'blocked')
    return same
  }

  async function isSentAgain(login: PersonInChromium) {
    await login.window.click('summary')
    await login.clicks(RESEND)
    await login.sees('verify-email', 'sent')
    await login.reads(2)
  }

  /** A login from the start, to its code. */
  async function signsInAnew(login: PersonInChromium) {
    const before = login.mailCount()
    await login.signsIn()
    await login.sees('verify-email', 'blocked')
    await login.reads(before + 1)
    await login.types()
    await login.isAtApp()
  }

  async function isDenied(login: PersonInChromium) {
    await login.window.waitForURL(`${h.callback}?**`)
    const { searchParams } = new URL(login.window.url())
    expect(searchParams.get('error')).to.equal('access_denied')
    expect(searchParams.get('state')).to.equal(login.request.state)
    expect(searchParams.has('code')).to.equal(false)
    expect(await login.hasSession()).to.equal(false)
    expect(await login.isVerified()).to.equal(false)
  }

  /** How the code is told in this window as wrong. */
  async function isTold(login: PersonInChromium, words: string | undefined) {
    const field = login.window.locator('#code')
    expect(await field.getAttribute('aria-invalid')).to.equal('true')
    const hint = `#${await field.getAttribute('aria-describedby')}`
    expect(await login.window.textContent(hint)).to.equal(words)
    await login.getsNothing()
  }

  /** Another account signs in, in another tab of that browser. */
  async function signInBeside(login: PersonInChromium) {
    const { window } = await tabBeside(login)
    const somebody = personIn(h, window, await h.addVerified())
    await somebody.signsIn()
    await somebody.isAtApp()
    return login.in(window)
  }

  for (const locale of createViews('').locales) {
    it(`goes on by the code after a mistake, in ${locale}`, async () => {
      const page = windows['with scripts']()
      const words = wordsIn(locale)
      const login = await blockedIn(h, page, { ui_locales: locale })
      expect(await page.getAttribute('html', 'lang')).to.equal(locale)
      const label = words.get('verify-email.blocked.code') ?? ''
      await page.getByLabel(label).fill(wrongCode(login.code))
      await login.clicks(GO_ON)
      await isTold(login, words.get('verify-email.blocked.wrong'))
      // The field has the focus, and Enter is the button.
      await page.waitForFunction(() => document.activeElement?.id === 'code')
      await page.keyboard.type(login.code)
      await page.keyboard.press('Enter')
      await login.isAtApp()
    })
  }

  it('fits on a small laptop without scrolling, also after a mistake', async () => {
    const page = windows['with scripts']()
    await page.setViewportSize({ width: 1280, height: 800 })
    const login = await blockedIn(h, page)
    const height = () => page.evaluate(() => document.documentElement.scrollHeight)
    expect(await height()).to.be.at.most(800)
    for (const typed of ['', '12345', wrongCode(login.code)]) {
      await login.types(typed)
      expect(await height()).to.be.at.most(800)
    }
  })

  it('cancels once, where the button is pressed twice', async () => {
    const page = windows['with scripts']()
    const login = await blockedIn(h, page)
    const posts: (string | null)[] = []
    let pressedTwice = () => {}
    const held = new Promise<void>((resolve) => (pressedTwice = resolve))
    await page.route('**/verify-email/waiting', async (route) => {
      posts.push(route.request().postData())
      await held
      await route.continue()
    })
    await page.locator(CANCEL).scrollIntoViewIfNeeded()
    const { x = 0, y = 0, width = 0, height = 0 } = (await page.locator(CANCEL).boundingBox()) ?? {}
    await page.mouse.click(x + width / 2, y + height / 2)
    await page.mouse.click(x + width / 2, y + height / 2)
    pressedTwice()
    await isDenied(login)
    expect(posts).to.have.length(1)
    expect(posts[0]).to.include('action=cancel')
    await page.unroute('**/verify-email/waiting')
  })

  for (const [how, page] of Object.entries(windows)) {
    describe(how, () => {
      let login: PersonInChromium
      beforeEach(async () => {
        login = await blockedIn(h, page())
      })

      for (const [what, typed] of Object.entries(PASTED))
        it(`takes a code that is pasted ${what}`, async () => {
          await page().focus('#code')
          await page().keyboard.insertText(typed(login.code))
          await page().click(GO_ON)
          await login.isAtApp()
        })

      it('takes what is no code for no try, and is over after five wrong ones', async () => {
        for (const typed of ['12345', '1234567', 'abcdef']) {
          await login.types(typed)
          await isTold(login, wordsIn('en').get('verify-email.blocked.unread'))
        }
        for (const guess of [0, 1, 2, 3]) {
          await login.types(wrongCode(login.code, guess))
          await login.sees('verify-email', 'blocked')
        }
        await login.types(wrongCode(login.code, 4))
        await login.sees('verify-email', 'ended')
        await login.getsNothing()
        await signsInAnew(login)
      })

      it('waits for the code that the link shows elsewhere', async () => {
        await login.opensElsewhere(other())
        await login.types()
        await login.isAtApp()
        await other().reload()
        const elsewhere = login.in(other())
        await elsewhere.sees('verify-email', 'expired')
        expect(await other().getAttribute('main', 'data-reason')).to.equal('used')
        expect(await elsewhere.hasSession()).to.equal(false)
      })

      it('says that it is too early, and goes on once support verified the address', async () => {
        await login.clicks(GO_ON)
        await login.sees('verify-email', 'blocked')
        expect(await page().textContent('#code-hint')).to.include('isn’t confirmed yet')
        await login.getsNothing()
        expect(await h.users.markEmailVerified(login.id, login.email ?? '')).to.equal(true)
        await page().click(GO_ON)
        await login.isAtApp()
      })

      it('goes on with the same code after another mail was asked for', async () => {
        const { code } = login
        await isSentAgain(login)
        expect(login.code).to.equal(code)
        await login.types()
        await login.isAtApp()
      })

      it('finishes once in two tabs: the second says that the person is signed in', async () => {
        const same = await inAnotherTab(login)
        await login.types()
        await login.isAtApp()
        await same.types()
        await same.sees('verify-email', 'signed_in')
      })

      it('finishes once where two tabs send the code at the same time', async () => {
        const tabs = [login, await inAnotherTab(login)]
        for (const { window, code } of tabs) await window.fill('#code', code)
        await Promise.all(tabs.map((tab) => tab.clicks(GO_ON)))
        const [done, ...more] = tabs.filter(({ window }) => window.url().startsWith(h.callback))
        expect(more).to.deep.equal([])
        await done?.isAtApp()
        const second = tabs.find((tab) => tab !== done)
        await second?.window.waitForSelector('main:is([data-mode=signed_in], [data-mode=ended])')
      })

      it('is finished by the link over a session of another account', async () => {
        const beside = await signInBeside(login)
        await beside.opensLink()
        await beside.isAtApp()
      })

      it('is nothing in another browser', async () => {
        await openAgain(other(), await loginIn(page()))
        const elsewhere = login.in(other())
        await elsewhere.sees('verify-email', 'ended')
        await elsewhere.getsNothing()
        await login.types()
        await login.isAtApp()
      })

      it('gets nothing once its cookie is lost, and a login from the start is good', async () => {
        await page().context().clearCookies({ name: 'account_flows_browser' })
        await login.types()
        await login.sees('verify-email', 'ended')
        await login.getsNothing()
        await signsInAnew(login)
      })

      it('goes on to a client that wants its answer posted', async () => {
        const posting = await blockedIn(h, page(), { response_mode: 'form_post' })
        await posting.types()
        if (how === 'without scripts') await page().click('button, input[type=submit]')
        await page().waitForURL(h.callback)
        const answer = await page().textContent('body')
        const tokens = await h.party.exchange(posting.request, `${h.callback}?${answer}`)
        expect(tokens.claims()?.sub).to.equal(posting.id)
      })

      it('cancels, and is back at the client; the same page says afterwards that it is over, and leads on', async () => {
        const id = await loginIn(page())
        await page().click(CANCEL)
        await isDenied(login)
        await openAgain(page(), id)
        await login.sees('verify-email', 'ended')
        expect(await page().locator('main a.button').count()).to.equal(1)
        await signsInAnew(login)
      })

      it('uses another account, and ends at the client as that; the link of the first one does nothing', async () => {
        const somebody = personIn(h, page(), await h.addVerified())
        await page().click(OTHER_ACCOUNT)
        await somebody.typesCredentials()
        await Object.assign(somebody, { request: login.request }).isAtApp()
        await login.opensLink()
        await login.sees('verify-email', 'elsewhere')
        expect(await page().locator('p.code').count()).to.equal(0)
        expect(await login.isVerified()).to.equal(false)
      })

      it('may press each button too early', async () => {
        await login.clicks(GO_ON)
        await login.sees('verify-email', 'blocked')
        await login.getsNothing()
        await isSentAgain(login)
        await page().click('main a.standalone')
        await login.sees('verify-email', 'blocked')
        await page().click(CANCEL)
        await isDenied(login)
      })

      it('reloads at every step: no mail is sent twice, and the login goes on', async () => {
        if (how === 'without scripts') await openAgain(page(), await loginIn(page()))
        await page().reload()
        await login.sees('verify-email', 'blocked')
        await h.isIdle()
        expect(login.mailCount()).to.equal(1)
        await isSentAgain(login)
        await page().reload()
        await page().waitForSelector('main[data-mode=sent], main[data-mode=blocked]')
        await h.isIdle()
        expect(login.mailCount()).to.equal(2)
        await login.getsNothing()
        await login.types()
        await login.isAtApp()
      })

      it('goes back after every step: each page is there again, and leads on', async () => {
        await openAgain(page(), await loginIn(page()))
        await login.sees('verify-email', 'blocked')
        await isSentAgain(login)
        await page().goBack()
        await login.sees('verify-email', 'blocked')
        await page().click(CANCEL)
        await isDenied(login)
        await page().goBack()
        await login.sees('verify-email', 'ended')
        await page().click('main a.button')
        await page().waitForURL(`${new URL(h.callback).origin}/`)
        expect(await login.isVerified()).to.equal(false)
      })

      it('has the login in two tabs: what is cancelled in one is over in the other, which says so', async () => {
        const beside = await inAnotherTab(login)
        await page().click(CANCEL)
        await isDenied(login)
        await beside.window.click(GO_ON)
        await beside.sees('verify-email', 'ended')
        expect(await login.isVerified()).to.equal(false)
      })

      for (const mode of ['off', 'other_browser']) {
        it(`opens the link twice, here and elsewhere, in mode ${mode}, while the page is open: one code comes of it`, async () => {
          await h.put({ email_link_confirmation: mode })
          const beside = await page().context().newPage()
          const codes: string[] = []
          const note = (frame: Frame) => isCode(frame.url()) && codes.push(frame.url())
          for (const tab of [page(), beside]) tab.on('framenavigated', note)
          for (const tab of [other(), other(), beside, beside]) {
            await tab.goto(login.link)
            expect(await isSomewhere(tab), tab.url()).to.equal(true)
          }
          await login.clicks(GO_ON)
          await eventually('a code', () => codes.length > 0)
          expect(codes).to.have.length(1)
          const tokens = await h.party.exchange(login.request, codes[0] ?? '')
          expect(tokens.claims()?.sub).to.equal(login.id)
          await h.put({ email_link_confirmation: 'other_browser' })
        })
      }

      it('stays for days: the page says that the sign-in is over, and what to do', async () => {
        await moveTime(DAYS_MS)
        await login.types()
        await login.sees('verify-email', 'ended')
        await login.getsNothing()
        expect(await page().textContent('main')).to.include('Go back to the app and sign in')
        await login.signsIn()
        await login.sees('verify-email', 'blocked')
      })
    })
  }

  describe('where links are not to be confirmed', () => {
    const page = windows['with scripts']
    before(() => h.put({ email_link_confirmation: 'off' }))
    after(() => h.put({ email_link_confirmation: 'other_browser' }))

    it('goes on beside the browser that the link signed in', async () => {
      const login = await blockedIn(h, page())
      const elsewhere = login.in(other())
      await elsewhere.opensLink()
      await elsewhere.isAtApp()
      await page().click(GO_ON)
      await login.isAtApp()
    })

    it('goes on by the code, also where the link is refused for a session of another account', async () => {
      const login = await blockedIn(h, page())
      const beside = await signInBeside(login)
      await beside.opensLink()
      await beside.sees('verify-email', 'other_account')
      expect(await login.isVerified()).to.equal(false)
      await login.types()
      await login.isAtApp()
    })
  })

  /** At the client, or on a page of ours that says how it stands. */
  async function isSomewhere(tab: Page): Promise<boolean> {
    return isCode(tab.url()) || (await tab.locator('main[data-page=verify-email] p').count()) > 0
  }
})
