import { expect } from 'chai'
import type { ClientMetadata } from 'oidc-provider'
import type { BrowserContext } from 'playwright-core'
import {
  createBrowser,
  expectPage,
  type Answer,
  createUserAgent,
  decodeEntities,
} from '../support/user-agent.ts'
import { bearer, settingsOf } from '../support/admin.ts'
import { describeInChromium } from '../support/chromium.ts'
import { APP, partyOf } from '../support/clients.ts'
import { suiteExampleServer } from '../support/example-server.ts'
import { CLIENT, CONFIDENTIAL, suiteHarness } from '../support/harness.ts'
import { isActive, redeem } from '../support/oauth-requests.ts'
import { ask } from '../support/observe.ts'
import { type Person, tokenOf } from '../support/person.ts'
import { rawRequest } from '../support/raw-request.ts'
import { serve, type Served } from '../support/serve.ts'
import { several } from '../faults/load.ts'

const [APP_URI] = CLIENT.redirect_uris

const [SERVER_URI] = CONFIDENTIAL.redirect_uris

/** Registered like this, and to be kept like this. */
const ODD_URIS = [
  'https://odd.example/cb?state=theirs&code=theirs&x=1',
  'https://odd.example/cb?',
  'https://odd.example/a+b%20c/%E2%9C%93/%2F..%2e',
  'https://odd.example/a/../cb',
  'https://ODD.example/cb',
  'https://odd.example:443/cb',
  'https://xn--bcher-kva.example/cb/',
  'https://odd.example/cb;p=1,2?q=%26amp;%3Cb%3E',
]

const ODD = {
  ...CONFIDENTIAL,
  client_id: 'odd & <client>',
  redirect_uris: ODD_URIS,
} satisfies ClientMetadata

const NATIVE = {
  ...CLIENT,
  client_id: 'native',
  application_type: 'native',
  redirect_uris: ['com.example.app:/cb', 'http://127.0.0.1/cb'],
} satisfies ClientMetadata

/** Each looks like a redirect URI of the client `app`, or becomes one in some parser, and none is (RED-02). */
const NEAR_MISSES: Record<string, string> = {
  'another origin': 'https://evil.example/cb',
  'a trailing slash': `${APP_URI}/`,
  'a longer path': `${APP_URI}/x`,
  'a longer last segment': `${APP_URI}x`,
  'a shorter path': 'https://app.example/c',
  'no path': 'https://app.example',
  'a query': `${APP_URI}?x=y`,
  'an empty query': `${APP_URI}?`,
  'a fragment': `${APP_URI}#x`,
  'an empty fragment': `${APP_URI}#`,
  'a path in another case': 'https://app.example/CB',
  'a scheme in another case': 'HTTPS://app.example/cb',
  'a host in another case': 'https://APP.example/cb',
  'the default port': 'https://app.example:443/cb',
  'another port': 'https://app.example:8443/cb',
  'another scheme': 'http://app.example/cb',
  'no scheme': '//app.example/cb',
  'a path alone': '/cb',
  'dot segments': 'https://app.example/a/../cb',
  'encoded dot segments': 'https://app.example/a/%2e%2e/cb',
  'a double slash': 'https://app.example//cb',
  'an encoded letter': 'https://app.example/%63b',
  'a backslash before the path': 'https://app.example\\cb',
  'backslashes after the scheme': 'https:\\\\app.example\\cb',
  'one slash after the scheme': 'https:/app.example/cb',
  'a tab': `${APP_URI}\t`,
  'a line break': `${APP_URI}\n`,
  'a line break within': 'https://app.exa\nmple/cb',
  NUL: `${APP_URI}\0`,
  'a space in front': ` ${APP_URI}`,
  'a byte order mark': `\u{FEFF}${APP_URI}`,
  'a longer domain': 'https://app.example.evil.example/cb',
  'a sub-domain': 'https://x.app.example/cb',
  'the host as user': 'https://app.example@evil.example/cb',
  'the host as user and password': 'https://app.example:x@evil.example/cb',
  'a user': 'https://user@app.example/cb',
  'a dot after the host': 'https://app.example./cb',
  'a full-width letter': 'https://ａpp.example/cb',
  'a look-alike letter': 'https://\u0430pp.example/cb',
  'a soft hyphen': 'https://ap\u00ADp.example/cb',
  'a list': `${APP_URI},https://evil.example/`,
  'the URI of another client': SERVER_URI,
  nothing: '',
}

/** What would run, or lead astray, as an address on a page (RED-03). */
const DANGEROUS = [
  'javascript:alert(1)//https://app.example/cb',
  'JaVaScRiPt:alert(1)',
  'java\tscript:alert(1)',
  '\u0001javascript:alert(1)',
  'data:text/html,<script>alert(1)</script>',
  'vbscript:msgbox(1)',
  'file:///etc/passwd',
  'blob:https://app.example/x',
  '//evil.example/cb',
  '/\\evil.example/cb',
  '\\\\evil.example/cb',
]

describe('A redirect URI that is not registered (RED-01, RED-02, RED-03, RED-04)', () => {
  const agent = createUserAgent()
  const h = suiteHarness()

  const parameters = (redirect_uri: string) => ({ ...APP, redirect_uri, state: 's' })
  const all = [...Object.entries(NEAR_MISSES), ...DANGEROUS.map((uri) => [uri, uri] as const)]

  /** Nothing on the page leads anywhere but to ourselves; a hidden field is text, and leads nowhere. */
  function expectNowhere({ text, headers, location }: Answer) {
    expect(location).to.equal(undefined)
    const addresses = text.matchAll(/\s(?:href|action|formaction|src|content)="([^"]*)"/g)
    for (const [, address = ''] of addresses) {
      if (/^(width=|noindex|no-referrer|light)/.test(address)) continue
      expect(new URL(decodeEntities(address), h.baseUrl).origin).to.equal(h.baseUrl)
    }
    expect(text).not.to.match(/http-equiv/i)
    const policy = headers.get('content-security-policy') ?? ''
    expect(policy).to.include("form-action 'self';")
  }

  /** Some at once, each with a user of its own. Of one network, ten passwords are hashed or wait at most. */
  const forAll = (check: (uri: string) => Promise<void>) =>
    several(all, 8, ([what, uri]) =>
      check(uri).catch((error: unknown) => {
        throw new Error(`${JSON.stringify(what)}: ${String(error)}`, { cause: error })
      }),
    )

  it('leads nowhere from forgot-password, its mail and its end', () =>
    forAll(async (uri) => {
      const user = await h.addVerified()
      const form = await agent.get(
        `${h.oauthUrl}/forgot-password?${new URLSearchParams(parameters(uri))}`,
      )
      expect([form.status, form.mode]).to.deep.equal([200, 'form'])
      expectNowhere(form)

      const { answer } = await ask(h, user.username, parameters(uri))
      expectPage(answer, 200, 'forgot-password', 'sent')
      expectNowhere(answer)
      const { mail, link } = await user.mail(1)
      expect(link).to.equal(`${h.oauthUrl}/reset-password?token=${tokenOf(link)}`)
      expect(`${mail.text}${String(mail.html)}`).not.to.match(/app\.example|evil|script:/)

      const opened = await agent.get(link)
      expectNowhere(opened)
      const done = await h.reset(link, 'a new password')
      expect(done.mode).to.equal('done')
      expect(done.text).not.to.match(/<a /)
      expectNowhere(done)
    }))

  it('leads nowhere from resend-verification and its link, which only verifies: it is neither signed nor mailed (SIG-16)', () =>
    forAll(async (uri) => {
      const user = await h.addUnverified()
      const link = await user.asksAgain(parameters(uri))
      expect([...new URL(link).searchParams.keys()]).to.deep.equal(['token', 'authorize_sig'])
      const { mail } = await user.mail(1)
      expect(`${mail.text}${String(mail.html)}`).not.to.match(/app\.example|evil|script:/)
      await user.opensLink()
      await user.isOnlyVerified()
      expectNowhere(user.page)
    }))

  it('is no way into a login: the provider answers itself, without a redirect', async () => {
    // The provider takes an empty one for none.
    for (const [, uri] of all.filter(([, each]) => each !== '')) {
      const { url } = await h.party.begin({ redirect_uri: uri })
      const { status, location } = await createUserAgent().get(url)
      expect([status, location], uri).to.deep.equal([400, undefined])
    }
    const back = await (await h.addVerified()).signsIn()
    expect(back.location).to.match(/^https:\/\/app\.example\/cb\?code=/)
  })
})

describe('What a client sent comes back as it was sent (4.2, 4.6)', () => {
  const h = suiteHarness({ clients: [CLIENT, CONFIDENTIAL, ODD, NATIVE] })

  for (const [client, uris] of [
    [ODD, ODD_URIS],
    [NATIVE, [...NATIVE.redirect_uris, 'http://127.0.0.1:54321/cb']],
  ] as const) {
    it(`redirect URIs that are odd, and registered, through a link: ${client.client_id}`, async () => {
      for (const redirectUri of uris) {
        const party = await partyOf(h, { ...client, redirect_uris: [redirectUri] })
        const login = await h.blockedLogin({ party })
        expect(new URL(login.link).searchParams.get('redirect_uri')).to.equal(redirectUri)
        const agent = createUserAgent()
        let answer = await agent.get(login.link)
        if (client === NATIVE) {
          answer = await h.follow(agent, answer)
          expect(answer.mode, redirectUri).to.equal('consent')
          answer = await h.follow(agent, await agent.post(answer.url, { consent: 'yes' }))
        }
        const location = answer.location ?? ''
        expect(location, redirectUri).to.match(/[?&]code=[\w-]{43}/)
        expect(location.startsWith(new URL(redirectUri).href.split('?')[0] ?? 'no')).to.equal(true)
        const { searchParams } = new URL(location)
        expect(searchParams.getAll('state').at(-1)).to.equal(login.request.state)
      }
    })
  }
})

describe('The code of a verification link (RED-12, RED-13)', () => {
  const h = suiteHarness()

  it('is good once, for the client that asked, and what it gave ends when it is tried again', async () => {
    const login = await h.blockedLogin()
    const { location = '' } = await login.opensLink()
    const code = new URL(location).searchParams.get('code') ?? ''
    const record = await h.provider.AuthorizationCode.find(code)
    expect((record?.exp ?? Infinity) - (record?.iat ?? 0)).to.be.at.most(60)

    const stranger = await partyOf(h, { ...CONFIDENTIAL, redirect_uris: [APP_URI] })
    const refused = await stranger.exchange(login.request, location).catch((e: unknown) => e)
    expect(refused).to.be.instanceOf(Error).and.include({ status: 400, error: 'invalid_grant' })
    const { access_token } = await login.comesBack()
    expect(await isActive(h, access_token)).to.equal(true)
    expect(await redeem(h, login.request, location)).to.equal('invalid_grant')
    expect(await isActive(h, access_token)).to.equal(false)
  })

  it('comes without the token, its signature or its hash, whatever the response mode, and with no referrer (RED-07)', async () => {
    for (const [response_mode, policy] of [
      ['query', 'no-referrer'],
      ['fragment', 'no-referrer'],
      ['form_post', 'strict-origin'],
    ] as const) {
      const login = await h.blockedLogin({ extra: { response_mode } })
      const { searchParams } = new URL(login.link)
      const { headers, text } = await login.opensLink()
      const everything = [...headers].flat().join('\n') + text
      expect(everything).to.include(APP_URI)
      for (const secret of [searchParams.get('token'), searchParams.get('authorize_sig')]) {
        expect(everything, response_mode).not.to.include(secret)
      }
      expect(headers.get('cache-control')).to.include('no-store')
      expect(headers.get('referrer-policy'), response_mode).to.equal(policy)
    }
  })
})

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

  // That every form is refused so, and nothing changes, is in test/http/refusals.test.ts.
  it('is refused for every pair of headers that tells of it; from our own pages it is taken', async () => {
    for (const { what, headers, isTaken } of headerPairs(h.baseUrl)) {
      // Whether it was read is all that is asked.
      const sent = { body: 'x=1', headers }
      const { status, mode } = await rawRequest(`${h.oauthUrl}/forgot-password`, sent)
      expect([status, mode], what).to.deep.equal(isTaken ? [400, 'invalid'] : [403, 'refused'])
    }
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

describeInChromium('A page of another site (HDR-01) [full]', (browser) => {
  const h = suiteHarness()
  let evil: Served
  let evilUrl: string
  let html = ''
  let context: BrowserContext
  let ann: Person

  before(async () => {
    ann = await h.addUser({ username: 'ann' })
    evil = await serve((_req, res) => {
      res.setHeader('content-type', 'text/html')
      res.end(html)
    })
    // Another site than 127.0.0.1.
    evilUrl = `http://localhost:${evil.port}/`
  })
  after(() => evil?.close())
  beforeEach(async () => {
    context = await browser().newContext()
  })
  afterEach(() => context.close())

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

const EVIL = 'https://evil.example'

describe('The admin API, from where it must not be reached (5.1)', () => {
  const h = suiteHarness()

  const admin = (init: RequestInit = {}) => fetch(`${h.baseUrl}/admin/api/settings`, init)
  const good = JSON.stringify({ email_verification_expiration: '5h' })
  const json = { 'content-type': 'application/json' }

  it('lets no page of another site read or change anything, with whatever cookies (ADM-10)', async () => {
    const somebody = await h.addVerified()
    await somebody.signsIn()
    const cookie = somebody.agent.cookiesFor(`${h.baseUrl}/admin/api/settings`)
    const from = { origin: EVIL, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }
    const asked = {
      'access-control-request-method': 'PUT',
      'access-control-request-headers': 'authorization, content-type',
    }
    for (const [init, status] of [
      [{ method: 'OPTIONS', headers: { ...from, ...asked } }, 401],
      [{ method: 'OPTIONS', headers: { ...from, ...asked, ...bearer } }, 405],
      [{ headers: { ...from, cookie } }, 401],
      [{ method: 'PUT', headers: { ...from, ...json, cookie }, body: good }, 401],
      [{ headers: { ...from, ...bearer } }, 200],
    ] as const) {
      const response = await admin(init)
      expect(response.status).to.equal(status)
      const names = [...response.headers.keys()]
      expect(names.filter((name) => name.startsWith('access-control-'))).to.deep.equal([])
      expect(response.headers.has('set-cookie')).to.equal(false)
    }
    expect(await settingsOf(h).shown()).to.include({ email_verification_expiration: '24h' })
  })
})
