import { expect } from 'chai'
import type { BrowserContext } from 'playwright-core'
import { createBrowser } from '../support/browser.ts'
import { describeInChromium } from '../support/chromium.ts'
import { suiteExampleServer } from '../support/example-server.ts'
import { PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import { withoutMail } from '../support/observe.ts'
import { rawRequest } from '../support/raw-request.ts'
import { serve, type Served } from '../support/serve.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { addUnverified, blockedLogin, type Person, tokenOf } from '../support/person.ts'

const OF_THE_ATTACKER = {
  password: 'a password of the attacker',
  confirm_password: 'a password of the attacker',
}
const SITES = [undefined, 'same-origin', 'none', 'same-site', 'cross-site', 'Cross-Site', 'odd']
const OTHER_ORIGINS = ['null', 'NULL', 'https://evil.example', 'OTHER_SCHEME', 'OTHER_PORT']
const NEARLY_OWN = ['OWN.evil.example', 'OWN/', 'OWN, https://evil.example']
const ORIGINS = [undefined, 'OWN', ...OTHER_ORIGINS, ...NEARLY_OWN]

/** Every pair of the two headers, and whether a form with them is taken. */
function headerPairs(own: string) {
  const { protocol, hostname, port } = new URL(own)
  const originOf = (pattern: string) =>
    pattern
      .replace('OWN', own)
      .replace('OTHER_SCHEME', own.replace(protocol, 'https:'))
      .replace('OTHER_PORT', `${protocol}//${hostname}:${Number(port) + 1}`)
  return SITES.flatMap((site) =>
    ORIGINS.map((pattern) => ({
      what: `Sec-Fetch-Site: ${site}, Origin: ${pattern}`,
      headers: {
        ...(site !== undefined && { 'sec-fetch-site': site }),
        ...(pattern !== undefined && { origin: originOf(pattern) }),
      },
      isTaken:
        (site === undefined || site === 'same-origin' || site === 'none') &&
        (pattern === undefined ||
          pattern === 'OWN' ||
          (pattern === 'null' && site === 'same-origin')),
    })),
  )
}

describe('A form of ours that another site posts (HDR-04)', () => {
  const h = suiteHarness()
  let ann: Person
  let link: string
  let login: Person

  before(async () => {
    ann = await h.addUser({ username: 'ann' })
    await addUnverified(h, { username: 'una' })
    login = await blockedLogin(h)
    link = await ann.forgets()
  })

  const forms: Record<string, () => Record<string, string>> = {
    'forgot-password': () => ({ identifier: 'ann' }),
    'resend-verification': () => ({ username: 'una' }),
    'reset-password': () => ({ token: tokenOf(link), ...OF_THE_ATTACKER }),
    'verify-email/waiting': () => ({ login: login.loginId(), code: login.code }),
  }
  for (const [path, form] of Object.entries(forms)) {
    it(`is refused by ${path} for every pair of headers that tells of it, and changes nothing`, async () => {
      const body = new URLSearchParams(form()).toString()
      await withoutMail(h, async () => {
        for (const { what, headers, isTaken } of headerPairs(h.baseUrl)) {
          if (isTaken) continue
          const answer = await rawRequest(`${h.oauthUrl}/${path}`, { body, headers })
          expect([answer.status, answer.mode], what).to.deep.equal([403, 'refused'])
        }
      })
      expect(await ann.hasPassword(PASSWORD)).to.equal(true)
    })

    it(`is taken by ${path} from our own pages, and from what is no browser`, async () => {
      for (const { what, headers, isTaken } of headerPairs(h.baseUrl)) {
        if (!isTaken) continue
        // Nothing in it that matters: that it was read is all that is asked.
        const { status } = await rawRequest(`${h.oauthUrl}/${path}`, { body: 'x=1', headers })
        expect(status, what).to.equal(400)
      }
    })
  }

  it('spoils nothing: the links still work', async () => {
    await login.stillGetsIn()
    expect((await h.reset(link, 'a password of Ann')).mode).to.equal('done')
    expect((await h.forgot('ann')).mode).to.equal('sent')
    await h.mail.mailTo(ann.email ?? '', 2)
  })
})

describe('The forms of the example’s login page (login CSRF)', () => {
  const server = suiteExampleServer()

  it('are refused when another site posts them; from the page itself they sign in', async () => {
    const browser = createBrowser(server.baseUrl)
    const { hidden } = await browser.visit('/demo/start')
    const form = { ...hidden, username: 'alice', password: 'alice-password', decision: 'allow' }
    for (const path of ['/oauth2/login', '/oauth2/login/consent']) {
      for (const { what, headers, isTaken } of headerPairs(server.baseUrl)) {
        if (isTaken) continue
        const answer = await browser.postForm(path, form, headers)
        expect([answer.status, answer.mode], `${path} ${what}`).to.deep.equal([403, 'refused'])
      }
    }
    const own = { origin: 'null', 'sec-fetch-site': 'same-origin' }
    const signedIn = await browser.submit('/oauth2/login', form, own)
    expect([signedIn.page, signedIn.mode]).to.deep.equal(['demo', 'signed_in'])
  })

  it('do nothing in a browser that has not asked for them, whoever posts', async () => {
    const victim = createBrowser(server.baseUrl)
    const attacker = await createBrowser(server.baseUrl).visit('/demo/start')
    const form = { ...attacker.hidden, username: 'alice', password: 'alice-password' }
    expect((await victim.submit('/oauth2/login', form)).mode).to.equal('start_again')
    expect((await victim.visit('/demo/start')).page).to.equal('login')
  })
})

describeInChromium('A page of another site (HDR-01, HDR-04) [full]', (browser) => {
  let h: Harness
  let evil: Served
  let evilUrl: string
  let html = ''
  let context: BrowserContext
  let ann: Person

  before(async () => {
    h = await startHarness()
    ann = await h.addUser({ username: 'ann' })
    await addUnverified(h, { username: 'una' })
    evil = await serve((_req, res) => {
      res.setHeader('content-type', 'text/html')
      res.end(html)
    })
    // Another site than 127.0.0.1.
    evilUrl = `http://localhost:${evil.port}/`
  })
  after(async () => {
    await h?.close()
    await evil?.close()
  })
  beforeEach(async () => {
    context = await browser().newContext()
  })
  afterEach(() => context.close())

  const formOf = (path: string, fields: Record<string, string>, enctype = '') =>
    `<form method="post" action="${h.oauthUrl}/${path}" ${enctype}>
     ${Object.entries(fields)
       .map(([name, value]) => `<input name="${name}" value="${value}">`)
       .join('')}</form><script>document.forms[0].submit()</script>`

  it('posts none of our forms by itself: no mail, no reset', async () => {
    const link = await ann.forgets()
    const forms: [path: string, fields: Record<string, string>][] = [
      ['forgot-password', { identifier: 'ann' }],
      ['resend-verification', { username: 'una' }],
      ['reset-password', { token: tokenOf(link), ...OF_THE_ATTACKER }],
    ]
    await withoutMail(h, async () => {
      for (const [path, fields] of forms) {
        for (const referrer of ['', '<meta name="referrer" content="no-referrer">']) {
          html = referrer + formOf(path, fields)
          const page = await context.newPage()
          await page.goto(evilUrl)
          await page.waitForURL(`${h.oauthUrl}/${path}`)
          expect(await page.locator('main').getAttribute('data-mode'), path).to.equal('refused')
          await page.close()
        }
      }
      html = `<script>fetch(${JSON.stringify(`${h.oauthUrl}/forgot-password`)}, {
        method: 'POST', mode: 'no-cors', credentials: 'include',
        body: new URLSearchParams({ identifier: 'ann' }),
      }).finally(() => { document.title = 'tried' })</script>`
      const page = await context.newPage()
      await page.goto(evilUrl)
      await page.waitForFunction('document.title === "tried"')
    })
    expect(await ann.hasPassword(PASSWORD)).to.equal(true)
    expect((await h.reset(link, 'a password of Ann')).mode).to.equal('done')
  })

  it('shows none of our pages in a frame, and does not keep hold of the window of a reset link', async () => {
    const link = await ann.forgets()
    html = `<iframe src="${link}"></iframe><a href="${link}" target="_blank" rel="opener">mail</a>`
    const page = await context.newPage()
    await page.goto(evilUrl)
    const framed = page.frames().find((frame) => frame !== page.mainFrame())
    expect(await framed?.locator('main').count()).to.equal(0)
    const [opened] = await Promise.all([context.waitForEvent('page'), page.click('a')])
    await opened.waitForLoadState()
    expect(await opened.locator('main').getAttribute('data-mode')).to.equal('form')
    expect(await opened.evaluate('window.opener')).to.equal(null)
  })
})
