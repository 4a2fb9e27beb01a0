import { expect } from 'chai'
import { addUnverified, addVerified, blockedLogin } from '../support/blocked-login.ts'
import { describeInChromium } from '../support/chromium.ts'
import { keptWindow } from './kept-window.ts'
import {
  expectAtClient,
  inMode,
  signIn,
  startBrowserHarness,
  type BrowserHarness,
} from './login-in-chromium.ts'

describeInChromium('The forms, posted without scripts [full]', (browser) => {
  let h: BrowserHarness
  const page = keptWindow(browser, { javaScriptEnabled: false })

  before(async () => {
    h = await startBrowserHarness()
  })
  after(() => h?.close())

  it('ask for a fresh verification link from the page of a broken one', async () => {
    const { username, email } = await addUnverified(h)
    await page().goto(`${h.oauthUrl}/verify-email?token=half-of-a-li`)
    await inMode(page(), 'expired')
    await page().fill('input[name=username]', username)
    await page().click('button[type=submit]')
    await inMode(page(), 'sent')
    expect((await h.mail.mailTo(email ?? '')).link).to.include('/verify-email?token=')
  })

  it('answer the question about another account, and lead on to the client (RED-14)', async () => {
    const login = await blockedLogin(h, { party: h.party })
    const signedIn = await addVerified(h)
    const request = await h.party.begin()
    await signIn(page(), request, signedIn.username)
    await expectAtClient(h, page(), { request, user: signedIn })
    await page().goto(login.link)
    await inMode(page(), 'other_account')
    await page().click('button[value=continue]')
    await expectAtClient(h, page(), login)
  })

  it('are refused when a page of another site posts them, and change nothing', async () => {
    const { username, email } = await addVerified(h)
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
})
