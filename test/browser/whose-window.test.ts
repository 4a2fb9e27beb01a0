import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { createViews } from '../../src/views/index.ts'
import { isVerified } from '../support/blocked-login.ts'
import { describeInChromium } from '../support/chromium.ts'
import { wrongNumber } from '../support/waiting-window.ts'
import { keptWindow } from './kept-window.ts'
import {
  answerTo,
  expectAtClient,
  expectConfirmed,
  expectNothingHappened,
  hasSession,
  inMode,
  logInAndWait,
  startBrowserHarness,
  type BrowserHarness,
} from './login-in-chromium.ts'

const CONFIRM = 'button[value=confirm]'
const DISOWN = 'button[value=disown]'
const GO_ON = 'form.waiting button'

const wordsIn = (locale: string) =>
  new Map<string, string>(
    Object.entries(
      JSON.parse(
        readFileSync(new URL(`../../views/locales/${locale}.json`, import.meta.url), 'utf8'),
      ),
    ),
  )

describeInChromium('A window that goes on by the number that it shows [full]', (browser) => {
  let h: BrowserHarness
  const windows = {
    'with scripts': keptWindow(browser),
    'without scripts': keptWindow(browser, { javaScriptEnabled: false }),
  }
  const others = {
    'with scripts': keptWindow(browser),
    'without scripts': keptWindow(browser, { javaScriptEnabled: false }),
  }

  before(async () => {
    h = await startBrowserHarness({
      settings: { email_link_confirmation: 'other_browser', waiting_window: 'match' },
    })
  })
  after(() => h?.close())

  /** As it is seen, from the left to the right. */
  const numberIn = async (page: Page) =>
    ((await page.locator('.number').textContent()) ?? '').replaceAll(/\s/g, '')

  for (const how of ['with scripts', 'without scripts'] as const) {
    const [page, other] = [windows[how], others[how]]

    for (const locale of createViews('').locales) {
      it(`is confirmed after a mistake, ${how}, in ${locale}`, async () => {
        const words = wordsIn(locale)
        const login = await logInAndWait(h, page(), { ui_locales: locale })
        const number = await numberIn(page())
        expect(number).to.match(/^[1-9]\d$/)
        await other().goto(login.link)
        await inMode(other(), 'confirm')
        expect(await other().getAttribute('html', 'lang')).to.equal(locale)
        const label = words.get('verify-email.confirm.number') ?? ''
        await other().getByLabel(label).fill(wrongNumber(number))
        await answerTo(other(), () => other().click(CONFIRM))
        await expectNothingHappened(h, other(), login.user)
        const field = other().locator('#number')
        expect(await field.getAttribute('aria-invalid')).to.equal('true')
        expect(
          await other().textContent(`#${await field.getAttribute('aria-describedby')}`),
        ).to.equal(words.get('verify-email.confirm.number_wrong'))
        // The field has the focus, and Enter is the button that confirms.
        await other().waitForFunction(() => document.activeElement?.id === 'number')
        await other().keyboard.type(number)
        await other().keyboard.press('Enter')
        await expectConfirmed(h, other(), login.user)
        expect(await hasSession(h, other())).to.equal(false)
        if (how === 'without scripts') await page().click(GO_ON)
        await expectAtClient(h, page(), login)
      })
    }

    it(`shows the same number after a reload and after another link was asked for, ${how}`, async () => {
      const login = await logInAndWait(h, page())
      const number = await numberIn(page())
      await answerTo(page(), () => page().click('form[action$="/resend-verification"] button'))
      await inMode(page(), 'sent')
      expect(await numberIn(page())).to.equal(number)
      await page().click('main a.standalone')
      await inMode(page(), 'blocked')
      expect(await numberIn(page())).to.equal(number)
      expect(await isVerified(h, login.user)).to.equal(false)
    })

    it(`is over where nobody sees it, ${how}, with the field left empty`, async () => {
      const login = await logInAndWait(h, page())
      await other().goto(login.link)
      await answerTo(other(), () => other().click(DISOWN))
      await inMode(other(), 'disowned')
      await expectNothingHappened(h, other(), login.user)
      if (how === 'without scripts') await page().click(GO_ON)
      await inMode(page(), 'ended')
      expect(await hasSession(h, page())).to.equal(false)
    })

    it(`is over after two wrong numbers, ${how}; the address is confirmed by another button`, async () => {
      const login = await logInAndWait(h, page())
      const number = await numberIn(page())
      await other().goto(login.link)
      for (const at of [0, 1]) {
        await other().fill('#number', wrongNumber(number, at))
        await answerTo(other(), () => other().click(CONFIRM))
      }
      await other().waitForFunction(() => document.activeElement?.id === 'refusal')
      await expectNothingHappened(h, other(), login.user)
      await other().click('button[value=confirm_only]')
      await expectConfirmed(h, other(), login.user)
      if (how === 'without scripts') await page().click(GO_ON)
      await inMode(page(), 'ended')
      expect(await hasSession(h, page())).to.equal(false)
    })
  }
})
