import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeInChromium } from '../support/chromium.ts'
import { words } from '../support/words.ts'
import { answerTo, keptWindow, inMode, suiteBrowserHarness } from './person-in-chromium.ts'

describeInChromium('The forms, posted without scripts [full]', (browser) => {
  const h = suiteBrowserHarness()
  const page = keptWindow(browser, { javaScriptEnabled: false })

  it('are refused when a page of another site posts them, and change nothing', async () => {
    const { username, email } = await h.addVerified()
    await page().route('https://evil.example/**', (route) =>
      route.fulfill({
        contentType: 'text/html',
        body: `<form method=post action="${h.oauthUrl}/forgot-password"><input name=identifier value=${username}><button>go</button></form>`,
      }),
    )
    await page().goto('https://evil.example/')
    await page().click('button')
    await inMode(page(), 'refused')

    await page().goto(`${h.oauthUrl}/forgot-password`)
    await page().fill('input[name=identifier]', username)
    await page().click('button[type=submit]')
    await h.mail.mailTo(email ?? '')
    expect(h.mail.mails.filter(({ to }) => to.includes(email ?? ''))).to.have.length(1)
  })

  it('set a new password that is refused until it is good, by the browser or by us, posted with Origin: null', async () => {
    const { user, link } = await h.userWithLink()
    const origins: (string | undefined)[] = []
    page().on('request', (request) => {
      if (request.method() === 'POST') origins.push(request.headers()['origin'])
    })
    await page().goto(link)
    expect(await page().locator('#password').evaluate(isFocused)).to.equal(true)
    await typePasswords(page(), 'short')
    expect(await page().locator('#password:invalid').count()).to.equal(1)
    await page().fill('#password', '🔑'.repeat(8))
    expect(await page().locator('#password:invalid').count()).to.equal(0)
    await typePasswords(page(), 'я'.repeat(40))
    await inMode(page(), 'password_too_long')
    expect(await told(page(), 'password')).to.include('over the limit: 4.')
    await answerTo(page(), () => page().reload())
    await inMode(page(), 'password_too_long')
    await typePasswords(page(), 'x'.repeat(73), 'another one, mistyped')
    await inMode(page(), 'password_mismatch')
    expect(await told(page(), 'password')).to.include('over the limit: 9.')
    expect(await told(page(), 'confirm_password')).to.equal(MISMATCH)
    await page().goBack()
    await typePasswords(page(), NEW)
    await inMode(page(), 'done')
    expect(await user.hasPassword(NEW)).to.equal(true)
    expect(new Set(origins)).to.deep.equal(new Set(['null']))
  })
})

describeInChromium('The form for a new password, with scripts [full]', (browser) => {
  const h = suiteBrowserHarness()
  const page = keptWindow(browser)
  const other = keptWindow(browser)
  const field = (name: string) => page().locator(`#${name}`)

  it('tells all that is wrong beside its field before anything is sent, and keeps what was typed', async () => {
    const { user, link } = await h.userWithLink()
    await page().goto(link)
    await typePasswords(page(), 'short', 'shirt')
    await inMode(page(), 'password_mismatch')
    await expectTold(page(), 'password', SHORT, true)
    await expectTold(page(), 'confirm_password', MISMATCH, true)
    expect(await field('password').evaluate(isFocused)).to.equal(true)
    await field('password').press('End')
    await field('password').press('x')
    for (const name of ['password', 'confirm_password'])
      expect(await field(name).getAttribute('aria-invalid')).to.equal('false')
    await field('password').press('Tab')
    await expectTold(page(), 'password', SHORT, true)
    await expectTold(page(), 'confirm_password', MISMATCH, true)
    await typePasswords(page(), NEW, `${NEW} `)
    await expectTold(page(), 'password', LONG_ENOUGH, false)
    await expectTold(page(), 'confirm_password', MISMATCH, true)
    expect(await field('confirm_password').evaluate(isFocused)).to.equal(true)
    expect(await field('password').inputValue()).to.equal(NEW)
    expect(await field('confirm_password').inputValue()).to.equal(`${NEW} `)
    expect(h.requests.filter((each) => each.startsWith('POST /oauth2/reset'))).to.deep.equal([])

    await field('confirm_password').press('Backspace')
    await expectTold(page(), 'confirm_password', MATCH, false)
    await page().click('button[type=submit]')
    await inMode(page(), 'done')
    expect(await user.hasPassword(NEW)).to.equal(true)
  })

  it('tells what only the service knows once it was sent, and not as a fault once the next one is begun', async () => {
    await h.put({ password_blocklist: 'common' })
    const { user, link } = await h.userWithLink()
    await page().goto(link)
    await typePasswords(page(), 'qwerty123456')
    await inMode(page(), 'password_common')
    const common = words['reset-password.password_common.refusal']
    await expectTold(page(), 'password', common, true)
    expect(await field('password').evaluate(isFocused)).to.equal(true)
    await field('password').press('q')
    expect(await field('password').getAttribute('aria-invalid')).to.equal('false')
    await typePasswords(page(), NEW, `${NEW} `)
    await inMode(page(), 'password_mismatch')
    await expectTold(page(), 'password', LONG_ENOUGH, false)
    await field('confirm_password').press('Backspace')
    await page().click('button[type=submit]')
    await inMode(page(), 'done')
    expect(await user.hasPassword(NEW)).to.equal(true)
    await h.put({ password_blocklist: 'off' })
  })

  it('tells the rule calmly while it is typed, and a fault once its field was left', async () => {
    const { link } = await h.userWithLink()
    await page().goto(link)
    await field('password').pressSequentially('seven c')
    await expectTold(page(), 'password', 'At least 8 characters', false)
    await field('password').pressSequentially('h')
    await expectTold(page(), 'password', LONG_ENOUGH, false)
    await field('password').press('Backspace')
    await expectTold(page(), 'password', 'At least 8 characters', false)
    await field('password').press('Tab')
    await expectTold(page(), 'password', SHORT, true)
    await field('password').fill('🔑'.repeat(8))
    await expectTold(page(), 'password', LONG_ENOUGH, false)
    expect(await told(page(), 'confirm_password')).to.equal('')
  })

  it('tells how many characters are too many, as we count them, at 72 bytes, in the language of the page', async () => {
    const { user, link } = await h.userWithLink()
    await page().goto(`${link}&ui_locales=de`)
    await field('password').fill('я'.repeat(36))
    await expectTold(page(), 'password', '✓ Mindestens 8 Zeichen', false)
    for (const [password, excess] of [
      ['я'.repeat(37), 1],
      ['x'.repeat(73), 9],
      [`${'я'.repeat(36)} 🔑`, 2],
    ] as const) {
      await field('password').fill(password)
      await page()
        .locator('#password-hint', { hasText: `Überzählige Zeichen: ${excess}.` })
        .waitFor()
    }
    await typePasswords(page(), 'я'.repeat(37))
    await inMode(page(), 'password_too_long')
    expect(await field('password').getAttribute('aria-invalid')).to.equal('true')
    await typePasswords(page(), 'я'.repeat(36))
    await inMode(page(), 'done')
    expect(await user.hasPassword('я'.repeat(36))).to.equal(true)
  })

  it('shows both passwords with one button that says what it does, and hides them before it is sent', async () => {
    const { link } = await h.userWithLink()
    await page().goto(link)
    const types = () => page().locator('main input[id]').evaluateAll(typesOf)
    expect(await types()).to.deep.equal(['password', 'password'])
    await field('password').fill('correct horse')
    await page().getByRole('button', { name: 'Show passwords' }).click()
    expect(await types()).to.deep.equal(['text', 'text'])
    await page().getByRole('button', { name: 'Hide passwords' }).press('Space')
    expect(await types()).to.deep.equal(['password', 'password'])
    expect(await field('password').inputValue()).to.equal('correct horse')

    await page().getByRole('button', { name: 'Show passwords' }).click()
    await field('confirm_password').fill('correct horse')
    await page().evaluate(() =>
      addEventListener('submit', () =>
        sessionStorage.setItem(
          'types',
          [...document.querySelectorAll('main input[id]')]
            .map((input) => (input as HTMLInputElement).type)
            .join(),
        ),
      ),
    )
    await page().click('button[type=submit]')
    await inMode(page(), 'done')
    expect(await page().evaluate(() => sessionStorage.getItem('types'))).to.equal(
      'password,password',
    )
  })

  it('is busy once it was sent, and takes no second press', async () => {
    const { user, link } = await h.userWithLink()
    await page().goto(link)
    await page().evaluate(() =>
      addEventListener('submit', ({ submitter, defaultPrevented }) => {
        const seen = JSON.parse(sessionStorage.getItem('seen') ?? '[]') as unknown[]
        seen.push([submitter?.getAttribute('aria-busy'), defaultPrevented])
        sessionStorage.setItem('seen', JSON.stringify(seen))
      }),
    )
    await field('password').fill(NEW)
    await field('confirm_password').fill(NEW)
    await page()
      .locator('button[type=submit]')
      .evaluate((button: HTMLButtonElement) => {
        button.click()
        button.click()
      })
    await inMode(page(), 'done')
    const seen = await page().evaluate(() => sessionStorage.getItem('seen'))
    expect(JSON.parse(seen ?? '')).to.deep.equal([
      ['true', false],
      ['true', true],
    ])
    expect(await user.hasPassword(NEW)).to.equal(true)
  })

  it('says what to do next in a second tab, and to whoever goes back, once the link was used', async () => {
    const { user, link } = await h.userWithLink()
    await page().goto(link)
    await other().goto(link)
    await typePasswords(page(), NEW)
    await inMode(page(), 'done')
    await typePasswords(other(), 'a second password')
    await inMode(other(), 'invalid')
    expect(await other().locator('main a.button').count()).to.equal(1)
    await page().goBack()
    await inMode(page(), 'invalid')
    expect(await page().locator('main a.button').count()).to.equal(1)
    expect(await user.hasPassword(NEW)).to.equal(true)
  })
})

const NEW = 'a password from Chromium'
const SHORT = 'This password is too short. Use at least 8 characters.'
const MISMATCH = words['reset-password.password_mismatch.refusal']
const LONG_ENOUGH = '✓ At least 8 characters'
const MATCH = '✓ Passwords match'

async function typePasswords(page: Page, password: string, confirm = password) {
  await page.fill('input[name=password]', password)
  await page.fill('input[name=confirm_password]', confirm)
  await page.click('button[type=submit]')
}

const told = (page: Page, name: string) => page.locator(`#${name}-hint`).textContent()

/** The page comes to tell it beside that field, as a fault or calmly. */
async function expectTold(page: Page, name: string, words: string | undefined, isFault: boolean) {
  const hint = page.locator(isFault ? `#${name}-hint.fault` : `#${name}-hint:not(.fault)`)
  await hint.and(page.getByText(words ?? '', { exact: true })).waitFor()
  const invalid = await page.locator(`#${name}`).getAttribute('aria-invalid')
  expect(invalid).to.equal(String(isFault))
}

/** These run in the page. */
const isFocused = (element: Element) => element === document.activeElement
const typesOf = (inputs: Element[]) => inputs.map((input) => (input as HTMLInputElement).type)
