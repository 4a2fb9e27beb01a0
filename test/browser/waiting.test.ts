import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { createViews } from '../../src/views/index.ts'
import { describeInChromium } from '../support/chromium.ts'
import { codeIn, wrongCode } from '../support/person.ts'
import { wordsIn } from '../support/words.ts'
import {
  answerTo,
  blockedIn,
  keptWindow,
  suiteBrowserHarness,
  type PersonInChromium,
} from './person-in-chromium.ts'

const GO_ON = '#waiting button'
const CANCEL = 'button[value=cancel]'
const RESEND = 'form[action$="/resend-verification"] button'

const PASTED = {
  'with blanks and a hyphen around and between': (code: string) =>
    ` ${code.slice(0, 2)} ${code.slice(2, 4)}-${code.slice(4)} `,
  'in the digits of another script': (code: string) =>
    code.replaceAll(/\d/g, (digit) => String.fromCodePoint(0x660 + Number(digit))),
}

describeInChromium('The page that waits [full]', (browser) => {
  const h = suiteBrowserHarness({ settings: { email_link_confirmation: 'other_browser' } })
  const windows = {
    'with scripts': keptWindow(browser),
    'without scripts': keptWindow(browser, { javaScriptEnabled: false }),
  }

  const loginIn = (window: Page) => window.locator('#waiting input[name=login]').inputValue()

  /** The page of the login once more, as another tab, another browser or a reload shows it. */
  async function openAgain(window: Page, id: string) {
    await window.goto(`${h.oauthUrl}/verify-email/waiting?login=${id}`)
  }

  async function isSentAgain(login: PersonInChromium) {
    await login.window.click('summary')
    await login.clicks(RESEND)
    await login.sees('verify-email', 'sent')
    await login.reads(2)
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

  for (const locale of createViews('').locales) {
    it(`goes on by the code after a mistake, in ${locale}`, async () => {
      const page = windows['with scripts']()
      const words = wordsIn(locale)
      const login = await blockedIn(h, page, { ui_locales: locale })
      expect(await page.getAttribute('html', 'lang')).to.equal(locale)
      const label = words['verify-email.blocked.code'] ?? ''
      await page.getByLabel(label).fill(wrongCode(login.code))
      await login.clicks(GO_ON)
      await isTold(login, words['verify-email.blocked.wrong'])
      // The field has the focus, and Enter is the button.
      await page.waitForFunction(() => document.activeElement?.id === 'code')
      await page.keyboard.type(login.code.slice(0, 1))
      expect(await page.getAttribute('#code', 'aria-invalid')).to.equal('false')
      expect(await page.locator('.fault').count()).to.equal(0)
      await page.keyboard.type(login.code.slice(1))
      await page.keyboard.press('Enter')
      await login.isAtApp()
    })
  }

  for (const [how, windowOf] of Object.entries(windows)) {
    it(`takes another address by the keyboard alone, after a mistake, ${how} (3.9)`, async () => {
      const page = windowOf()
      const login = await blockedIn(h, page, {}, { mayReplaceEmail: true })
      const before = login.code
      const details = page.locator('details', { has: page.locator('#email') })
      await details.locator('summary').focus()
      await page.keyboard.press('Enter')
      const email = `right-${login.username}@mail.example`
      for (const typed of ['ann..lee@example.com', email]) {
        await page.focus('#email')
        await page.fill('#email', typed)
        // Chromium checks less than the service does.
        await answerTo(page, () => page.keyboard.press('Enter'))
        await login.sees('verify-email', 'blocked')
        if (typed === email) continue
        expect(await page.inputValue('#email')).to.equal(typed)
        expect(await page.getAttribute('#email', 'aria-invalid')).to.equal('true')
        expect(await page.textContent('#email-hint')).to.include('one complete email address')
      }
      expect(await page.textContent('main')).to.include('r•••@mail.example')
      const { mail } = await h.mail.mailTo(email)
      await login.types(before)
      await login.getsNothing()
      await login.types(codeIn(mail))
      await login.isAtApp()
      expect(await h.users.findById(login.id)).to.include({ email, emailVerified: true })
    })
  }

  it('fits on a small laptop without scrolling, also after a mistake', async () => {
    const page = windows['with scripts']()
    await page.setViewportSize({ width: 1280, height: 800 })
    const login = await blockedIn(h, page, {}, { mayReplaceEmail: true })
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

      it('goes on to a client that wants its answer posted', async () => {
        const posting = await blockedIn(h, page(), { response_mode: 'form_post' })
        await posting.types()
        if (how === 'without scripts') await page().click('button, input[type=submit]')
        await page().waitForURL(h.callback)
        const answer = await page().textContent('body')
        const tokens = await h.party.exchange(posting.request, `${h.callback}?${answer}`)
        expect(tokens.claims()?.sub).to.equal(posting.id)
      })

      it('leads from the page of another mail back to the code, which is the same', async () => {
        const { code } = login
        await isSentAgain(login)
        expect(login.code).to.equal(code)
        await page().click('main a.standalone')
        await login.types()
        await login.isAtApp()
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
    })
  }
})
