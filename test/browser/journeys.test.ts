import { expect } from 'chai'
import { describeInChromium } from '../support/chromium.ts'
import { blockedIn, keptWindow, personIn, suiteBrowserHarness } from './person-in-chromium.ts'

const STOLEN = 'the password of a thief'
const NEW = 'a password from Chromium'

describeInChromium('What a person goes through', (browser) => {
  const h = suiteBrowserHarness({ settings: { email_link_confirmation: 'other_browser' } })
  const page = keptWindow(browser)
  const other = keptWindow(browser)
  const plain = keptWindow(browser, { javaScriptEnabled: false })

  for (const [scripts, window] of [
    ['with', page],
    ['without', plain],
  ] as const) {
    it(`is a password that somebody else set, taken back ${scripts} scripts by "This wasn't me" (NOT-07)`, async () => {
      const user = await h.addVerified()
      const person = personIn(h, window(), user)
      const thief = user.in()
      await h.put({ password_changed_email: 'true' })
      await thief.choosesPassword(STOLEN, await user.forgets())
      await h.put({ password_changed_email: 'false' })
      await thief.signsIn(STOLEN)
      expect(await thief.account()).to.equal(user.id)
      await user.mail(2)
      await person.opensLink(await user.notMeLink())
      await person.sees('not-me', 'confirm')
      await window().click('button[value=confirm]')
      await person.sees('not-me', 'secured')
      expect(await thief.account()).to.equal(undefined)
      await person.signsIn(STOLEN)
      await person.sees('login', 'wrong')
      await user.getsBackIn('an honest password')
      await person.signsIn('an honest password')
      await person.isAtApp()
    })

    it(`is a link that shows its code in another browser, and the code, typed where the login waits, ${scripts} scripts`, async () => {
      const login = await blockedIn(h, window())
      await login.clicks('#waiting button')
      await login.sees('verify-email', 'blocked')
      await login.opensElsewhere(other())
      await login.types()
      await login.isAtApp()
      expect(await login.in(other()).hasSession()).to.equal(false)
    })
  }

  it('is a forgotten password on the login page, and the way back into that login', async () => {
    const person = personIn(h, page(), await h.addVerified())
    person.request = await h.party.begin()
    await page().goto(person.request.url.href)
    const login = page().url()
    const parameters = new URLSearchParams({ client_id: 'app', redirect_uri: h.callback })
    await person.opensLink(await person.forgets(`?${parameters}`))
    await person.sees('reset-password', 'form')
    await person.choosesPassword(NEW)
    await person.sees('reset-password', 'done')
    await page().click('main a.button')
    await page().waitForURL(login)
    await person.typesCredentials(NEW)
    await person.isAtApp()
  })

  it('is an invitation to an account without a password: the first one is chosen, and signs in', async () => {
    const user = await h.addImported()
    const link = await user.isInvited()
    const [person, late] = [personIn(h, page(), user), personIn(h, other(), user)]
    for (const each of [late, person]) {
      await each.opensLink(link)
      await each.sees('accept-invitation', 'form')
    }
    await person.choosesPassword('a first password', 'a frist password')
    await person.sees('accept-invitation', 'password_mismatch')
    await person.choosesPassword('a first password')
    await person.sees('accept-invitation', 'done')
    await person.signsIn('a first password')
    await person.isAtApp()
    await late.opensLink(link)
    await late.sees('accept-invitation', 'invalid')
  })

  it('is a link that leads on to the client at once in the browser that logged in, whose window says that it may be closed', async () => {
    const login = await blockedIn(h, page())
    const beside = login.in(await page().context().newPage())
    await beside.opensLink()
    await beside.isAtApp()
    await page().click('#waiting button')
    await login.sees('verify-email', 'signed_in')
  })
})
