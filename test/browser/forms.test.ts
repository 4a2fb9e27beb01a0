import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { BrowserContext, Page } from 'playwright-core'
import { describeInChromium } from '../support/chromium.ts'
import { CLIENT, PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

describeInChromium(
  'The forms, posted by our own pages, which send Origin: null (D31)',
  (browser) => {
    let h: Harness
    let client: Server
    let callback: string
    let context: BrowserContext
    let page: Page

    before(async () => {
      client = createServer((_req, res) => res.end('the client'))
      await new Promise<void>((resolve) => client.listen(0, '127.0.0.1', resolve))
      callback = `http://127.0.0.1:${(client.address() as AddressInfo).port}/cb`
      h = await startHarness({ clients: [{ ...CLIENT, redirect_uris: [callback] }] })
    })
    after(async () => {
      await h.close()
      client.closeAllConnections()
      client.close()
    })

    beforeEach(async () => {
      context = await browser().newContext({ javaScriptEnabled: false })
      page = await context.newPage()
    })
    afterEach(() => context.close())

    const mode = () => page.locator('main').getAttribute('data-mode')

    async function signInWith(username: string, password: string) {
      const { url } = await h.party.begin({ redirect_uri: callback })
      const agent = createUserAgent()
      return h.follow(agent, await h.login(agent, url, username, password))
    }

    it('ask for a reset link, and set the new password', async () => {
      const alice = await h.addUser({ username: 'alice' })
      const origins: (string | undefined)[] = []
      page.on('request', (request) => {
        if (request.method() === 'POST') origins.push(request.headers()['origin'])
      })
      await page.goto(`${h.oauthUrl}/forgot-password`)
      await page.fill('input[name=identifier]', 'alice')
      await page.click('button[type=submit]')
      expect(await mode()).to.equal('sent')

      const { link } = await h.mail.mailTo(alice.email ?? '')
      await page.goto(link)
      expect(await mode()).to.equal('form')
      await page.fill('input[name=password]', 'a password from Chromium')
      await page.fill('input[name=confirm_password]', 'another one, mistyped')
      await page.click('button[type=submit]')
      expect(await mode()).to.equal('password_mismatch')
      await page.fill('input[name=password]', 'a password from Chromium')
      await page.fill('input[name=confirm_password]', 'a password from Chromium')
      await page.click('button[type=submit]')
      expect(await mode()).to.equal('done')

      expect(origins).to.deep.equal(['null', 'null', 'null'])
      expect((await signInWith('alice', PASSWORD)).location).to.equal(undefined)
      const back = await signInWith('alice', 'a password from Chromium')
      expect(back.location).to.include(`${callback}?code=`)
    })

    it('ask for a fresh verification link from the page of a broken one', async () => {
      const bob = await h.addUser({ username: 'bob', emailVerified: false })
      await page.goto(`${h.oauthUrl}/verify-email?token=half-of-a-li`)
      expect(await mode()).to.equal('expired')
      await page.fill('input[name=username]', 'bob')
      await page.click('button[type=submit]')
      expect(await mode()).to.equal('sent')
      expect((await h.mail.mailTo(bob.email ?? '')).link).to.include('/verify-email?token=')
    })

    it('answer the question about another account, and lead on to the client (RED-14)', async () => {
      await h.addUser({ username: 'carol' })
      const dave = await h.addUser({ username: 'dave', emailVerified: false })
      const { url } = await h.party.begin({ redirect_uri: callback })
      const elsewhere = createUserAgent()
      expect((await h.login(elsewhere, url, 'dave')).mode).to.equal('blocked')
      const { link } = await h.mail.mailTo(dave.email ?? '')

      const signedIn = createUserAgent()
      const other = await h.party.begin({ redirect_uri: callback })
      await h.follow(signedIn, await h.login(signedIn, other.url, 'carol'))
      await context.addCookies(
        signedIn
          .cookiesFor(h.oauthUrl)
          .split('; ')
          .map((pair) => {
            const [name = '', value = ''] = pair.split('=')
            return { name, value, url: h.oauthUrl }
          }),
      )
      await page.goto(link)
      expect(await mode()).to.equal('other_account')
      await page.click('button[value=continue]')
      expect(page.url()).to.include(`${callback}?code=`)
      expect(await page.textContent('body')).to.equal('the client')
    })

    it('are refused when a page of another site posts them, and change nothing', async () => {
      const erin = await h.addUser({ username: 'erin' })
      await context.route('https://evil.example/**', (route) =>
        route.fulfill({
          contentType: 'text/html',
          body: `<form method=post action="${h.oauthUrl}/forgot-password"><input name=identifier value=erin><button>go</button></form>`,
        }),
      )
      await page.goto('https://evil.example/')
      await page.click('button')
      expect(await mode()).to.equal('refused')

      await page.goto(`${h.oauthUrl}/forgot-password`)
      await page.fill('input[name=identifier]', 'erin')
      await page.click('button[type=submit]')
      await h.mail.mailTo(erin.email ?? '')
      expect(h.mail.mails.filter(({ to }) => to.includes(erin.email ?? ''))).to.have.length(1)
    })
  },
)
