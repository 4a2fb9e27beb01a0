import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { createViews } from '../../src/views/index.ts'
import { describeInChromium } from '../support/chromium.ts'
import { keptWindow } from './kept-window.ts'
import {
  answerTo,
  expectAtClient,
  expectNothingHappened,
  hasSession,
  inMode,
  logInAndWait,
  mailedTo,
  openElsewhere,
  signIn,
  startBrowserHarness,
  typeCode,
  type BrowserHarness,
  type LoginInWindow,
} from './login-in-chromium.ts'
import { addVerified, wrongCode } from '../support/person.ts'

const GO_ON = '#waiting button'
const RESEND = 'form[action$="/resend-verification"] button'

const wordsIn = (locale: string): Map<string, string> =>
  new Map(
    Object.entries(
      JSON.parse(
        readFileSync(new URL(`../../views/locales/${locale}.json`, import.meta.url), 'utf8'),
      ),
    ),
  )

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

  async function openAgain(page: Page) {
    const same = await page.context().newPage()
    const id = await page.locator('#waiting input[name=login]').inputValue()
    await same.goto(`${h.oauthUrl}/verify-email/waiting?login=${id}`)
    await inMode(same, 'blocked')
    return same
  }

  /** How the code is told in this window as wrong. */
  async function expectTold(page: Page, words: string | undefined, { user }: LoginInWindow) {
    const field = page.locator('#code')
    expect(await field.getAttribute('aria-invalid')).to.equal('true')
    expect(await page.textContent(`#${await field.getAttribute('aria-describedby')}`)).to.equal(
      words,
    )
    await expectNothingHappened(h, page, user)
  }

  /** Another account signs in, in another tab of that browser. */
  async function signInBeside(page: Page) {
    const [request, user] = [await h.party.begin(), await addVerified(h)]
    const beside = await page.context().newPage()
    await signIn(beside, request, user.username)
    await expectAtClient(h, beside, { request, user })
    return beside
  }

  for (const locale of createViews('').locales) {
    it(`goes on by the code after a mistake, in ${locale}`, async () => {
      const page = windows['with scripts']()
      const words = wordsIn(locale)
      const login = await logInAndWait(h, page, { ui_locales: locale })
      expect(await page.getAttribute('html', 'lang')).to.equal(locale)
      await page
        .getByLabel(words.get('verify-email.blocked.code') ?? '')
        .fill(wrongCode(login.code))
      await answerTo(page, () => page.click(GO_ON))
      await expectTold(page, words.get('verify-email.blocked.wrong'), login)
      // The field has the focus, and Enter is the button.
      await page.waitForFunction(() => document.activeElement?.id === 'code')
      await page.keyboard.type(login.code)
      await page.keyboard.press('Enter')
      await expectAtClient(h, page, login)
    })
  }

  it('fits on a small laptop without scrolling, also after a mistake', async () => {
    const page = windows['with scripts']()
    await page.setViewportSize({ width: 1280, height: 800 })
    const { code } = await logInAndWait(h, page)
    const height = () => page.evaluate(() => document.documentElement.scrollHeight)
    expect(await height()).to.be.at.most(800)
    for (const typed of ['', '12345', wrongCode(code)]) {
      await answerTo(page, () => typeCode(page, typed))
      expect(await height()).to.be.at.most(800)
    }
  })

  for (const [how, page] of Object.entries(windows)) {
    describe(how, () => {
      for (const [what, typed] of Object.entries({
        'with blanks and a hyphen around and between': (code: string) =>
          ` ${code.slice(0, 2)} ${code.slice(2, 4)}-${code.slice(4)} `,
        'in the digits of another script': (code: string) =>
          code.replaceAll(/\d/g, (digit) => String.fromCodePoint(0x660 + Number(digit))),
      }))
        it(`takes a code that is pasted ${what}`, async () => {
          const login = await logInAndWait(h, page())
          await page().focus('#code')
          await page().keyboard.insertText(typed(login.code))
          await page().click(GO_ON)
          await expectAtClient(h, page(), login)
        })

      it('takes what is no code for no try, and is over after five wrong ones', async () => {
        const login = await logInAndWait(h, page())
        for (const typed of ['12345', '1234567', 'abcdef']) {
          await answerTo(page(), () => typeCode(page(), typed))
          await expectTold(page(), wordsIn('en').get('verify-email.blocked.unread'), login)
        }
        for (const guess of [0, 1, 2, 3]) {
          await answerTo(page(), () => typeCode(page(), wrongCode(login.code, guess)))
          await inMode(page(), 'blocked')
        }
        await answerTo(page(), () => typeCode(page(), wrongCode(login.code, 4)))
        await inMode(page(), 'ended')
        await expectNothingHappened(h, page(), login.user)
        const request = await h.party.begin()
        await signIn(page(), request, login.user.username)
        await inMode(page(), 'blocked')
        const again = await mailedTo(h, login.user, 2)
        await typeCode(page(), again.code)
        await expectAtClient(h, page(), { request, user: login.user })
      })

      it('waits for the code that the link shows elsewhere', async () => {
        const login = await logInAndWait(h, page())
        await openElsewhere(h, other(), login)
        await typeCode(page(), login.code)
        await expectAtClient(h, page(), login)
        await other().reload()
        await inMode(other(), 'expired')
        expect(await other().getAttribute('main', 'data-reason')).to.equal('used')
        expect(await hasSession(h, other())).to.equal(false)
      })

      it('says that it is too early, and goes on once support verified the address', async () => {
        const login = await logInAndWait(h, page())
        await answerTo(page(), () => page().click(GO_ON))
        await inMode(page(), 'blocked')
        expect(await page().textContent('#code-hint')).to.include('isn’t confirmed yet')
        await expectNothingHappened(h, page(), login.user)
        const { id, email = '' } = login.user
        expect(await h.users.markEmailVerified(id, email)).to.equal(true)
        await page().click(GO_ON)
        await expectAtClient(h, page(), login)
      })

      it('goes on with the same code after another mail was asked for', async () => {
        const login = await logInAndWait(h, page())
        await page().click('summary')
        await answerTo(page(), () => page().click(RESEND))
        await inMode(page(), 'sent')
        const second = await mailedTo(h, login.user, 2)
        expect(second.code).to.equal(login.code)
        await typeCode(page(), second.code)
        await expectAtClient(h, page(), login)
      })

      it('finishes once in two tabs: the second says that the person is signed in', async () => {
        const login = await logInAndWait(h, page())
        const same = await openAgain(page())
        await typeCode(page(), login.code)
        await expectAtClient(h, page(), login)
        await answerTo(same, () => typeCode(same, login.code))
        await inMode(same, 'signed_in')
      })

      it('finishes once where two tabs send the code at the same time', async () => {
        const login = await logInAndWait(h, page())
        const tabs = [page(), await openAgain(page())]
        for (const tab of tabs) await tab.fill('#code', login.code)
        await Promise.all(tabs.map((tab) => answerTo(tab, () => tab.click(GO_ON))))
        const [done, ...more] = tabs.filter((tab) => tab.url().startsWith(h.callback))
        expect(more).to.deep.equal([])
        if (done) await expectAtClient(h, done, login)
        const second = tabs.find((tab) => tab !== done)
        await second?.waitForSelector('main:is([data-mode=signed_in], [data-mode=ended])')
      })

      it('is finished by the link in this browser, and then says that the person is signed in', async () => {
        const login = await logInAndWait(h, page())
        const beside = await page().context().newPage()
        await beside.goto(login.link)
        await expectAtClient(h, beside, login)
        await page().click(GO_ON)
        await inMode(page(), 'signed_in')
      })

      it('is finished by the link over a session of another account', async () => {
        const login = await logInAndWait(h, page())
        const beside = await signInBeside(page())
        await beside.goto(login.link)
        await expectAtClient(h, beside, login)
      })

      it('is nothing in another browser', async () => {
        const login = await logInAndWait(h, page())
        const id = await page().locator('#waiting input[name=login]').inputValue()
        await other().goto(`${h.oauthUrl}/verify-email/waiting?login=${id}`)
        await inMode(other(), 'ended')
        await expectNothingHappened(h, other(), login.user)
        await typeCode(page(), login.code)
        await expectAtClient(h, page(), login)
      })

      it('gets nothing once its cookie is lost, and a login from the start is good', async () => {
        const login = await logInAndWait(h, page())
        await page().context().clearCookies({ name: 'account_flows_browser' })
        await answerTo(page(), () => typeCode(page(), login.code))
        await inMode(page(), 'ended')
        await expectNothingHappened(h, page(), login.user)
        const request = await h.party.begin()
        await signIn(page(), request, login.user.username)
        await inMode(page(), 'blocked')
        await typeCode(page(), (await mailedTo(h, login.user, 2)).code)
        await expectAtClient(h, page(), { request, user: login.user })
      })

      it('goes on to a client that wants its answer posted', async () => {
        const login = await logInAndWait(h, page(), { response_mode: 'form_post' })
        await typeCode(page(), login.code)
        if (how === 'without scripts') await page().click('button, input[type=submit]')
        await page().waitForURL(h.callback)
        const answer = await page().textContent('body')
        const tokens = await h.party.exchange(login.request, `${h.callback}?${answer}`)
        expect(tokens.claims()?.sub).to.equal(login.user.id)
      })
    })
  }

  describe('where links are not to be confirmed', () => {
    const page = windows['with scripts']
    before(() => h.put({ email_link_confirmation: 'off' }))
    after(() => h.put({ email_link_confirmation: 'other_browser' }))

    it('goes on beside the browser that the link signed in', async () => {
      const login = await logInAndWait(h, page())
      await other().goto(login.link)
      await expectAtClient(h, other(), login)
      await page().click(GO_ON)
      await expectAtClient(h, page(), login)
    })

    it('goes on by the code, also where the link is refused for a session of another account', async () => {
      const login = await logInAndWait(h, page())
      const beside = await signInBeside(page())
      await beside.goto(login.link)
      await inMode(beside, 'other_account')
      expect(await login.user.isVerified()).to.equal(false)
      await typeCode(page(), login.code)
      await expectAtClient(h, page(), login)
    })
  })
})
