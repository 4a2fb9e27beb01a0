import { expect } from 'chai'
import { silently } from '../support/blocked-login.ts'
import { describeInChromium } from '../support/chromium.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { keptWindow } from './kept-window.ts'
import {
  answerTo,
  expectAtClient,
  expectNothingHappened,
  hasSession,
  inMode,
  logInAndWait,
  openElsewhere,
  signIn,
  startBrowserHarness,
  typeCode,
  type BrowserHarness,
} from './login-in-chromium.ts'
import { CLICK, scan } from './scanner.ts'
import {
  accountOf,
  addVerified,
  blockedLogin,
  addImported,
  type Person,
} from '../support/person.ts'

const HOUR_MS = 3_600_000

describeInChromium('What a person goes through', (browser) => {
  let h: BrowserHarness
  const page = keptWindow(browser)
  const other = keptWindow(browser)
  const plain = keptWindow(browser, { javaScriptEnabled: false })

  before(async () => {
    h = await startBrowserHarness({ settings: { email_link_confirmation: 'other_browser' } })
  })
  after(() => h?.close())

  async function typePasswords(password: string, confirm = password) {
    await page().fill('input[name=password]', password)
    await page().fill('input[name=confirm_password]', confirm)
    await page().click('button[type=submit]')
  }

  async function resetByMail({ username, email = '' }: Person, query = '') {
    await page().goto(`${h.oauthUrl}/forgot-password${query}`)
    await page().fill('input[name=identifier]', username)
    await page().click('button[type=submit]')
    await inMode(page(), 'sent')
    await page().goto((await h.mail.mailTo(email)).link)
    await inMode(page(), 'form')
    await typePasswords('a password from Chromium')
    await inMode(page(), 'done')
  }

  for (const scripts of ['with', 'without'])
    it(`is a password that somebody else set, taken back ${scripts} scripts by "This wasn't me" (NOT-07)`, async () => {
      const window = scripts === 'with' ? page() : plain()
      await h.put({ password_changed_email: 'true' })
      const user = await addVerified(h)
      const thief = createUserAgent()
      await h.reset(await user.forgets(), 'the password of a thief')
      await h.put({ password_changed_email: 'false' })
      const { url } = await h.party.begin()
      await h.follow(thief, await h.login(thief, url, user.username, 'the password of a thief'))
      expect(await accountOf(h, thief)).to.equal(user.id)
      await h.mail.mailTo(user.email ?? '', 2)
      await window.goto(await user.notMeLink())
      await inMode(window, 'confirm')
      await window.click('button[value=confirm]')
      await inMode(window, 'secured')
      expect((await silently(h, thief)).get('error')).to.equal('login_required')
      await signIn(window, await h.party.begin(), user.username, 'the password of a thief')
      await inMode(window, 'wrong')
      await user.getsBackIn()
      const request = await h.party.begin()
      await signIn(window, request, user.username, 'an honest password')
      await expectAtClient(h, window, { request, user })
    })

  it('is a forgotten password: a link is mailed, and signs in with the new one only', async () => {
    const user = await addVerified(h)
    await resetByMail(user)
    const request = await h.party.begin()
    await signIn(page(), request, user.username)
    await inMode(page(), 'wrong')
    expect(await hasSession(h, page())).to.equal(false)
    await signIn(page(), request, user.username, 'a password from Chromium')
    await expectAtClient(h, page(), { request, user })
  })

  it('is a forgotten password on the login page, and the way back into that login', async () => {
    const user = await addVerified(h)
    const request = await h.party.begin()
    await page().goto(request.url.href)
    const login = page().url()
    const carried = new URLSearchParams({ client_id: 'app', redirect_uri: h.callback })
    await resetByMail(user, `?${carried}`)
    await page().click('main a.button')
    await page().waitForURL(login)
    await page().fill('input[name=username]', user.username)
    await page().fill('input[name=password]', 'a password from Chromium')
    await page().click('button')
    await expectAtClient(h, page(), { request, user })
  })

  it('is an invitation to an account without a password: the first one is chosen, and signs in', async () => {
    const user = await addImported(h)
    const link = await user.isInvited()
    for (const window of [other(), page()]) {
      await window.goto(link)
      await inMode(window, 'form')
    }
    await typePasswords('a first password', 'a frist password')
    await inMode(page(), 'password_mismatch')
    await typePasswords('a first password')
    await inMode(page(), 'done')
    const request = await h.party.begin()
    await signIn(page(), request, user.username, 'a first password')
    await expectAtClient(h, page(), { request, user })
    await other().goto(link)
    await inMode(other(), 'invalid')
  })

  it('is a link that leads on to the client at once in the browser that logged in, whose window says that it may be closed', async () => {
    const login = await logInAndWait(h, page())
    const beside = await page().context().newPage()
    await beside.goto(login.link)
    await expectAtClient(h, beside, login)
    await page().click('#waiting button')
    await inMode(page(), 'signed_in')
  })

  for (const [scripts, window] of [
    ['with', page],
    ['without', plain],
  ] as const)
    it(`is a link that shows its code in another browser, and the code, typed where the login waits, ${scripts} scripts`, async () => {
      const login = await logInAndWait(h, window())
      await answerTo(window(), () => window().click('#waiting button'))
      await inMode(window(), 'blocked')
      await openElsewhere(h, other(), login)
      await typeCode(window(), login.code)
      await expectAtClient(h, window(), login)
      expect(await hasSession(h, other())).to.equal(false)
    })

  it('is a scanner that opens every link of the mail and presses each button, in vain, and then the person', async () => {
    const login = await logInAndWait(h, page())
    await scan(h, other(), { ...login, mode: 'elsewhere' }, CLICK)
    await scan(h, other(), { ...login, link: await login.user.notMeLink(), mode: 'confirm' }, CLICK)
    await page().goto(login.link)
    await expectAtClient(h, page(), login)
  })

  it('is a link that has expired, and a fresh one from its page, which is good where links are not to be confirmed', async () => {
    await h.put({ email_link_confirmation: 'off' })
    const { user, link } = await blockedLogin(h)
    await moveTime(25 * HOUR_MS)
    await page().goto(link)
    await inMode(page(), 'expired')
    await expectNothingHappened(h, page(), user)
    await page().click('form[action$="/resend-verification"] button')
    await inMode(page(), 'sent')
    await page().goto((await h.mail.mailTo(user.email ?? '', 2)).link)
    await page().waitForURL((url) => !url.href.includes('/resend-verification'))
    expect(await user.isVerified()).to.equal(true)
    await h.put({ email_link_confirmation: 'other_browser' })
  })
})
