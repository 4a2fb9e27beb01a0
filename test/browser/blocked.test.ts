import { expect } from 'chai'
import type { Frame, Page } from 'playwright-core'
import { describeInChromium } from '../support/chromium.ts'
import { moveTime } from '../support/time.ts'
import { PASSWORD } from '../support/harness.ts'
import { eventually } from '../support/eventually.ts'
import { isIdle } from '../support/jobs.ts'
import { keptWindow } from './kept-window.ts'
import {
  answerTo,
  expectAtClient,
  expectNothingHappened,
  hasSession,
  inMode,
  logInAndWait,
  mailedTo,
  signIn,
  startBrowserHarness,
  typeCode,
  type BrowserHarness,
  type LoginInWindow,
} from './login-in-chromium.ts'
import { addVerified } from '../support/person.ts'

const CANCEL = 'button[value=cancel]'
const OTHER_ACCOUNT = 'button[value=other_account]'
const RESEND = 'form[action$="/resend-verification"] button'
const HELP = 'details.help summary'
const GO_ON = '#waiting button'
const DAYS_MS = 3 * 86_400_000

describeInChromium('Whoever is blocked gets stuck nowhere [full]', (browser) => {
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

  const mailsOf = ({ user }: LoginInWindow) =>
    h.mail.mails.filter(({ to }) => to.includes(user.email ?? '')).length

  async function expectDenied(page: Page, { request, user }: LoginInWindow) {
    await page.waitForURL(`${h.callback}?**`)
    const { searchParams } = new URL(page.url())
    expect(searchParams.get('error')).to.equal('access_denied')
    expect(searchParams.get('state')).to.equal(request.state)
    expect(searchParams.has('code')).to.equal(false)
    expect(await hasSession(h, page)).to.equal(false)
    expect(await user.isVerified()).to.equal(false)
  }

  /** The page of the login once more, as another tab or a reload shows it. */
  async function openAgain(page: Page, id: string) {
    await page.goto(`${h.oauthUrl}/verify-email/waiting?login=${id}`)
  }

  const loginIn = (page: Page) => page.locator('#waiting input[name=login]').inputValue()

  async function resend(page: Page) {
    await page.click(HELP)
    await answerTo(page, () => page.click(RESEND))
    await inMode(page, 'sent')
  }

  it('cancels once, where the button is pressed twice', async () => {
    const page = windows['with scripts']()
    const login = await logInAndWait(h, page)
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
    await expectDenied(page, login)
    expect(posts).to.have.length(1)
    expect(posts[0]).to.include('action=cancel')
    await page.unroute('**/verify-email/waiting')
  })

  for (const [how, page] of Object.entries(windows)) {
    describe(how, () => {
      it('cancels, and is back at the client; the same page says afterwards that it is over, and leads on', async () => {
        const login = await logInAndWait(h, page())
        const id = await loginIn(page())
        await page().click(CANCEL)
        await expectDenied(page(), login)
        await openAgain(page(), id)
        await inMode(page(), 'ended')
        expect(await page().locator('main a.button').count()).to.equal(1)

        const request = await h.party.begin()
        await signIn(page(), request, login.user.username)
        await inMode(page(), 'blocked')
        await typeCode(page(), (await mailedTo(h, login.user, 2)).code)
        await expectAtClient(h, page(), { request, user: login.user })
      })

      it('uses another account, and ends at the client as that; the link of the first one does nothing', async () => {
        const login = await logInAndWait(h, page())
        const user = await addVerified(h)
        await page().click(OTHER_ACCOUNT)
        await page().fill('input[name=username]', user.username)
        await page().fill('input[name=password]', PASSWORD)
        await page().click('button')
        await expectAtClient(h, page(), { request: login.request, user })
        await page().goto(login.link)
        await inMode(page(), 'elsewhere')
        expect(await page().locator('p.code').count()).to.equal(0)
        expect(await login.user.isVerified()).to.equal(false)
      })

      it('may press each button too early', async () => {
        const login = await logInAndWait(h, page())
        await answerTo(page(), () => page().click(GO_ON))
        await inMode(page(), 'blocked')
        await expectNothingHappened(h, page(), login.user)
        await resend(page())
        await h.mail.mailTo(login.user.email ?? '', 2)
        await page().click('main a.standalone')
        await inMode(page(), 'blocked')
        await page().click(CANCEL)
        await expectDenied(page(), login)
      })

      it('reloads at every step: no mail is sent twice, and the login goes on', async () => {
        const login = await logInAndWait(h, page())
        if (how === 'without scripts') await openAgain(page(), await loginIn(page()))
        await page().reload()
        await inMode(page(), 'blocked')
        await isIdle(h)
        expect(mailsOf(login)).to.equal(1)
        await resend(page())
        await h.mail.mailTo(login.user.email ?? '', 2)
        await page().reload()
        await page().waitForSelector('main[data-mode=sent], main[data-mode=blocked]')
        await isIdle(h)
        expect(mailsOf(login)).to.equal(2)
        await expectNothingHappened(h, page(), login.user)
        await typeCode(page(), login.code)
        await expectAtClient(h, page(), login)
      })

      it('goes back after every step: each page is there again, and leads on', async () => {
        const login = await logInAndWait(h, page())
        const id = await loginIn(page())
        await openAgain(page(), id)
        await inMode(page(), 'blocked')
        await resend(page())
        await page().goBack()
        await inMode(page(), 'blocked')
        await page().click(CANCEL)
        await expectDenied(page(), login)
        await page().goBack()
        await inMode(page(), 'ended')
        await page().click('main a.button')
        await page().waitForURL(`${new URL(h.callback).origin}/`)
        expect(await login.user.isVerified()).to.equal(false)
      })

      it('has the login in two tabs: what is cancelled in one is over in the other, which says so', async () => {
        const login = await logInAndWait(h, page())
        const id = await loginIn(page())
        const beside = await page().context().newPage()
        await openAgain(beside, id)
        await inMode(beside, 'blocked')
        await page().click(CANCEL)
        await expectDenied(page(), login)
        await beside.click(GO_ON)
        await inMode(beside, 'ended')
        expect(await login.user.isVerified()).to.equal(false)
      })

      for (const mode of ['off', 'other_browser']) {
        it(`opens the link twice, here and elsewhere, in mode ${mode}, while the page is open: one code comes of it`, async () => {
          await h.put({ email_link_confirmation: mode })
          const login = await logInAndWait(h, page())
          const beside = await page().context().newPage()
          const codes: string[] = []
          const note = (frame: Frame) => isCode(frame.url()) && codes.push(frame.url())
          for (const tab of [page(), beside]) tab.on('framenavigated', note)
          for (const tab of [other(), beside]) {
            for (const _time of [1, 2]) {
              await tab.goto(login.link)
              expect(await isSomewhere(tab), tab.url()).to.equal(true)
            }
          }
          await answerTo(page(), () => page().click(GO_ON))
          await eventually('a code', () => codes.length > 0)
          expect(codes).to.have.length(1)
          const tokens = await h.party.exchange(login.request, codes[0] ?? '')
          expect(tokens.claims()?.sub).to.equal(login.user.id)
          await h.put({ email_link_confirmation: 'other_browser' })
        })
      }

      it('stays for days: the page says that the sign-in is over, and what to do', async () => {
        const login = await logInAndWait(h, page())
        await moveTime(DAYS_MS)
        await typeCode(page(), login.code)
        await inMode(page(), 'ended')
        await expectNothingHappened(h, page(), login.user)
        expect(await page().textContent('main')).to.include('Go back to the app and sign in')
        const request = await h.party.begin()
        await signIn(page(), request, login.user.username)
        await inMode(page(), 'blocked')
      })
    })
  }

  const isCode = (url: string) => url.startsWith(h.callback) && url.includes('code=')

  /** At the client, or on a page of ours that says how it stands. */
  async function isSomewhere(tab: Page): Promise<boolean> {
    return isCode(tab.url()) || (await tab.locator('main[data-page=verify-email] p').count()) > 0
  }
})
