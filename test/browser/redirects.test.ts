import { writeFile } from 'node:fs/promises'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { describeInChromium } from '../support/chromium.ts'
import { mailedLink, PASSWORD, seedUser, suiteExampleServer } from '../support/example-server.ts'
import { suiteFolder } from '../support/folders.ts'
import { inMode, keptWindow } from './person-in-chromium.ts'
import { serve, type Served } from '../support/serve.ts'
import { createUserAgent } from '../support/user-agent.ts'

describeInChromium(
  'The way back to a client of another origin, under our policy (RED-14) [full]',
  (browser) => {
    let client: Served
    let callback: string
    let landing: string
    let referrers: (string | undefined)[] = []
    const page = keptWindow(browser, { javaScriptEnabled: false })
    const other = keptWindow(browser, { javaScriptEnabled: false })

    const file = suiteFolder()

    before(async () => {
      // As a client does whose code is taken at one origin, and whose pages are at another.
      client = await serve((req, res) => {
        const isHop = req.url?.includes('state=hop') === true
        if (isHop) res.writeHead(302, { location: landing })
        res.end('the client')
      })
      callback = `${client.url}/cb`
      landing = `http://localhost:${client.port}/landed`
      const unverified = { email_verified: false, password: PASSWORD }
      const ann = seedUser('ann', { password: PASSWORD })
      const users = [ann, seedUser('ned', unverified), seedUser('ben', unverified)]
      const elsewhere = {
        client_id: 'elsewhere',
        client_secret: 'the secret of a client of the tests',
        redirect_uris: [callback],
        grant_types: ['authorization_code'],
        scope: 'openid',
      }
      await writeFile(file('seed.json'), JSON.stringify({ users, clients: [elsewhere] }))
      await writeFile(file('settings.json'), '{"require_email_verification":"true"}')
    })
    after(() => client?.close())
    const server = suiteExampleServer(() => ({
      SEED_FILE: file('seed.json'),
      SETTINGS_FILE: file('settings.json'),
    }))

    const authorization = (more: Record<string, string> = {}) => {
      const query = { client_id: 'elsewhere', response_type: 'code', scope: 'openid', state: 's' }
      const parameters = new URLSearchParams({ ...query, redirect_uri: callback, ...more })
      return `${server.baseUrl}/oauth2/auth?${parameters}`
    }

    before(() => {
      for (const window of [page(), other()]) {
        window.on('request', (request) => {
          if (request.url().startsWith(callback)) referrers.push(request.headers()['referer'])
        })
      }
    })
    beforeEach(() => {
      referrers = []
    })

    async function logIn(username: string, more: Record<string, string> = {}) {
      await page().goto(authorization(more))
      await page().fill('input[name=username]', username)
      await page().fill('input[name=password]', PASSWORD)
      await page().click('button[type=submit]')
    }

    async function expectAtClient(window: Page) {
      await window.waitForURL(`${callback}?code=*`)
      expect(await window.textContent('body')).to.equal('the client')
      expect(referrers).to.deep.equal([undefined])
    }

    it('works from the login form', async () => {
      await logIn('ann', { prompt: 'login' })
      await expectAtClient(page())
    })

    it('works from the consent form', async () => {
      await logIn('ann', { prompt: 'consent' })
      await page().click('button[value=allow]')
      await expectAtClient(page())
    })

    it('works from the window that waited, to a client that leads on to another origin', async () => {
      await logIn('ned', { state: 'hop' })
      await inMode(page(), 'blocked')
      await createUserAgent().get(await mailedLink(server, 'ned@example.com', '/verify-email?'))
      await page().click('form[action$="/verify-email/waiting"] button')
      await page().waitForURL(landing)
    })

    it('works from the mailed link, opened in another browser, and tells the client nothing of the link', async () => {
      await logIn('ben')
      await inMode(page(), 'blocked')
      const link = await mailedLink(server, 'ben@example.com', '/verify-email?')
      await other().goto(link)
      await expectAtClient(other())
      expect(other().url()).not.to.include(new URL(link).searchParams.get('token'))
    })
  },
)
