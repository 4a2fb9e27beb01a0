import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { instead } from '../support/records.ts'
import { createBrowser, type Answer, createUserAgent, type Form } from '../support/user-agent.ts'
import { suiteExampleServer } from '../support/example-server.ts'
import { suiteHarness } from '../support/harness.ts'
import { shapeOf } from '../support/observe.ts'
import { FORM, type RawAnswer, rawRequest, type RawRequest } from '../support/raw-request.ts'
import { read, skeletonOf } from '../views/read-pages.ts'

const big = 'x'.repeat(70_000)

const get: RawRequest = { method: 'GET' }

const EVIL = { origin: 'https://evil.example' }

const UNSTORED = { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' }

const UNFRAMED = { ...UNSTORED, 'x-content-type-options': 'nosniff', 'x-frame-options': 'DENY' }

/** It shows mails with their styles and pictures, each in a sandbox. */
const POLICY_OF_MAILBOX =
  "default-src 'none'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; script-src 'self'; connect-src 'self'; " +
  "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

/** A page that nobody frames, stores, sniffs, indexes or learns of, and that runs nothing. */
function expectPage(answer: Pick<RawAnswer, 'headers' | 'text' | 'page'>, what: string): void {
  const { headers, text, page } = answer
  expect(page, what).to.be.a('string')
  const policy = String(headers['content-security-policy'])
  if (page === 'mailbox') expect(policy).to.equal(POLICY_OF_MAILBOX)
  else {
    expect(policy.split('; '), what).to.include.members([
      "default-src 'none'",
      "style-src 'self'",
      "base-uri 'none'",
      "frame-ancestors 'none'",
    ])
    expect(policy, what).to.match(/form-action 'self'/)
    expect(policy, what).not.to.match(/unsafe|script-src (?!'self';)|\*|data:/)
  }
  const type = 'text/html; charset=utf-8'
  expect(headers, what).to.include({ 'content-type': type, 'x-robots-tag': 'noindex', ...UNFRAMED })
  expect(headers['permissions-policy'], what).to.include('camera=()')
  expectNoTraces({ headers, text }, what)
  expect(withoutOwnScript(text, page), what).not.to.match(/<script|<style|\sstyle=|\son[a-z]+=/)
}

function withoutOwnScript(html: string, page?: string): string {
  const own =
    page === 'mailbox'
      ? /<script type="module" src="\/mailbox\.js"><\/script>/
      : /<script type="module" src="\/oauth2\/account-flows\.js\?v=[\w-]{12}" blocking="render"><\/script>/
  return html.replace(own, '')
}

/** Nothing tells what it is made of, and nothing of what failed. */
function expectNoTraces({ headers, text }: Pick<RawAnswer, 'headers' | 'text'>, what: string) {
  expect(headers, what).not.to.have.any.keys('server', 'x-powered-by', 'etag')
  // Any letters may stand in an id that was drawn by lot.
  const words = text.replaceAll(/[\w-]{21,}/g, '')
  expect(words, what).not.to.match(/node_modules|\.ts:\d|\.js:\d|at \w+ \(|Mongo|koa/i)
}

type Asked = [path: string, status: number, request?: RawRequest]

function itHasEveryHeader(asked: Asked[], urlOf: () => string): void {
  for (const [path, status, request = {}] of asked) {
    it(`${request.method ?? 'POST'} ${path}, ${status}: has every header against framing, storing and scripts (XSS-09, HDR-02, HDR-09)`, async () => {
      const answer = await rawRequest(urlOf() + path, request)
      expect(answer.status, answer.text).to.equal(status)
      expectPage(answer, path)
    })
  }
}

describe('Every page of ours (HDR)', () => {
  const h = suiteHarness({ mayLogErrors: true })

  const asked: Asked[] = [
    ['/forgot-password', 200, get],
    ['/forgot-password', 200, { body: 'identifier=nobody' }],
    ['/forgot-password', 400, { body: 'identifier=' }],
    ['/forgot-password', 400, { body: 'identifier=%' }],
    ['/forgot-password', 403, { body: 'identifier=nobody', headers: EVIL }],
    ['/forgot-password', 405, { method: 'DELETE' }],
    ['/forgot-password', 413, { body: big }],
    ['/forgot-password', 415, { body: '{}', headers: { 'content-type': 'application/json' } }],
    ['/reset-password?token=x', 400, get],
    ['/reset-password', 400, { body: 'token=x' }],
    ['/verify-email?token=x', 400, get],
    ['/verify-email', 405, { body: 'action=x' }],
    ['/verify-email/waiting', 400, { body: 'action=x' }],
    ['/verify-email?token=x', 400, { ...get, headers: { 'sec-purpose': 'prefetch' } }],
    ['/not-me?token=x', 400, get],
    ['/not-me', 400, { body: 'token=x&action=confirm' }],
    ['/resend-verification', 200, { body: 'username=nobody' }],
    ['/resend-verification', 400, { body: 'username=' }],
    ['/resend-verification', 405, get],
  ]
  itHasEveryHeader(asked, () => h.oauthUrl)

  /** Every page that a link can lead to, by what it is. */
  async function pagesOfLinks(): Promise<Record<string, Answer>> {
    const agent = createUserAgent()
    const [ann, ben] = [await h.addVerified(), await h.addVerified()]
    const [link, other] = [await ann.forgets(), await ben.forgets()]
    const [login, verified] = [await h.blockedLogin(), await h.blockedLogin()]
    await verified.becomes({ emailVerified: true })
    await ben.signsIn()
    return {
      'mode blocked': login.blocked,
      'the form': await agent.get(link),
      'the form again': await h.reset(link, 'short'),
      'the form after a mismatch': await h.reset(link, 'one password', 'another password'),
      other_account: await ben.opensLink(login.link),
      'a prefetch': await agent.get(login.link, { 'sec-purpose': 'prefetch' }),
      'the redirect to the client': await login.opensLink(),
      'mode expired': await login.opensLink(),
      'mode expired for a broken link': await agent.get(login.link.slice(0, -3)),
      'mode verified': await verified.opensLink(),
      'another method': await agent.request('PUT', link),
      'a reset from another site': await agent.post(link, {}, EVIL),
      'a reset that is done': await h.reset(other, 'a new password'),
      'a spent link': await agent.get(other),
    }
  }

  it('so has every page of a link: stored nowhere, indexed nowhere, and no referrer tells the token (LINK-07, LINK-08, LINK-14, HDR-07)', async () => {
    const { 'the redirect to the client': back, ...pages } = await pagesOfLinks()
    for (const [what, { headers, text, page }] of Object.entries(pages)) {
      const { 'set-cookie': _, ...all } = Object.fromEntries(headers)
      expectPage({ headers: all, text, page }, what)

      expect(headers.has('last-modified'), what).to.equal(false)
      // A link that a person may follow is not loaded.
      const loaded = text.replace(/<a [^>]*rel="noreferrer"[^>]*>/g, '')
      expect(loaded, what).not.to.match(/(?:src|href|action)="?(?:[a-z]+:)?\/\//i)
      const opener = page === 'reset-password' ? 'same-origin' : null
      expect(headers.get('cross-origin-opener-policy'), what).to.equal(opener)
    }
    expect(pages['the form']?.page).to.equal('reset-password')
    expect(back?.status).to.equal(302)
    const { location: _, ...headers } = Object.fromEntries(back?.headers ?? [])
    expect(headers).to.include(UNSTORED)
    expectNoTraces({ headers, text: back?.text ?? '' }, 'the redirect')
  })

  it('has links outwards that tell no referrer', async () => {
    const user = await h.addVerified()
    const parameters = { client_id: 'server', redirect_uri: 'https://server.example/cb' }
    const { text } = await h.reset(await user.forgets(parameters), 'a new password')
    expect(text).to.match(/<a [^>]*rel="noreferrer"/)
    for (const [tag] of text.matchAll(/<a [^>]*>/g)) expect(tag).to.include('rel="noreferrer"')
  })

  const withForms = 'forgot-password reset-password verify-email/waiting resend-verification not-me'
  for (const path of withForms.split(' '))
    it(`${path} answers no method but those of its form, and says which (HDR-05)`, async () => {
      for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']) {
        const answer = await rawRequest(`${h.oauthUrl}/${path}`, { method })
        expect(answer.status, method).to.equal(405)
        expect(answer.headers.allow, method).to.match(/POST$/)
        expectPage(answer, method)
      }
    })

  it('says nothing of what failed on our side (HDR-08)', async () => {
    const fails = () => () => Promise.reject(new Error('Error: mongodb://secret:1'))
    const answer = await instead(h.store.resetTokens, 'find', fails, () =>
      rawRequest(`${h.oauthUrl}/reset-password?token=${'A'.repeat(43)}`, get),
    )
    expect([answer.status, answer.mode]).to.deep.equal([500, 'error'])
    expect(answer.text).not.to.include('secret')
    expectPage(answer, 'failed')
    expect((await rawRequest(`${h.oauthUrl}/reset-password?token=x`, get)).status).to.equal(400)
  })

  it('has a style sheet that no browser takes for something else', async () => {
    const { headers } = await rawRequest(`${h.oauthUrl}/account-flows.css`, get)
    expect(headers['content-type']).to.equal('text/css; charset=utf-8')
    expect(headers['x-content-type-options']).to.equal('nosniff')
  })
})

describe('Every page of the example server (HDR)', () => {
  const server = suiteExampleServer({ TRUST_PROXY: '1' })

  const asked: Asked[] = [
    ['/', 200, get],
    ['/mailbox', 200, get],
    ['/demo/callback?state=x', 200, get],
    ['/oauth2/login', 400, get],
    ['/oauth2/login', 400, { body: 'username=a' }],
    ['/oauth2/login', 405, { method: 'DELETE' }],
    ['/oauth2/login', 405, { method: 'TRACE' }],
    ['/oauth2/login', 413, { body: big }],
    ['/oauth2/login', 403, { body: 'username=a', headers: EVIL }],
    ['/oauth2/login/consent', 400, { body: 'decision=allow' }],
    ['/oauth2/login/consent', 405, get],
    ['/nothing', 404, get],
    ['/oauth2/nothing', 404, get],
    ['/oauth2/auth', 400, get],
    ['/oauth2/auth', 404, { method: 'DELETE' }],
    ['/oauth2/device', 200, get],
    ['/oauth2/session/end?id_token_hint=x', 400, get],
    ['/oauth2/session/end/confirm', 400, { body: '' }],
    ['/oauth2/session/end/success', 200, get],
  ]
  itHasEveryHeader(asked, () => server.baseUrl)

  it('has forms of the provider that a script posts; nobody frames or sniffs those either', async () => {
    const { headers } = await rawRequest(`${server.baseUrl}/oauth2/session/end`, get)
    expect(headers['content-security-policy']).to.include("frame-ancestors 'none'")
    expect(headers).to.include(UNFRAMED)
  })

  it('answers odd requests, and says nothing of itself (HDR-08, HDR-11)', async () => {
    const targets = ['http://[', 'http://[::1', '*', 'https://evil.example/oauth2/login']
    for (const request of [
      ...targets.map((target) => ({ ...get, target })),
      { headers: { 'content-encoding': 'gzip', 'content-type': FORM }, body: 'x' },
      { ...get, headers: { host: 'a b' } },
    ]) {
      const answer = await rawRequest(`${server.baseUrl}/oauth2/login`, request)
      expect(answer.status, JSON.stringify(request)).to.be.within(400, 415)
      expectNoTraces(answer, 'odd')
      expect(answer.headers['x-content-type-options']).to.equal('nosniff')
    }
    expect((await rawRequest(`${server.baseUrl}/oauth2/forgot-password`, get)).status).to.equal(200)
  })

  it('lets the login form go to the client and nowhere else, whatever is typed into it', async () => {
    let asks = 0
    for (const username of ['\0', '__proto__', '{"$gt":""}', 'a'.repeat(60_000)]) {
      const agent = createUserAgent()
      const started = await agent.get(`${server.baseUrl}/demo/start`)
      const asked = await agent.get(started.location ?? '')
      const cookie = agent.cookiesFor(`${server.baseUrl}/oauth2/login`)
      const uid = new URL(asked.location ?? '').searchParams.get('interaction')
      for (const name of ['username', 'username[$gt]', 'username[]', '__proto__[username]']) {
        const body = `interaction=${uid}&${name}=${encodeURIComponent(username)}&password[$gt]=&password=x`
        const answer = await rawRequest(`${server.baseUrl}/oauth2/login`, {
          body,
          headers: { cookie, 'x-forwarded-for': `192.0.2.${(asks += 1)}` },
        })
        expect([answer.status, answer.mode]).to.deep.equal([401, 'refused'])
        expectPage(answer, name)
      }
    }
  })
})

describe('A site that leads its own name to the example server (HDR-13)', () => {
  const server = suiteExampleServer()

  const ask = (host: string, path: string, more: RawRequest = get) =>
    rawRequest(`http://127.0.0.1:${server.port}${path}`, {
      ...more,
      headers: { ...more.headers, host },
    })

  it('reads and changes nothing: the answer is 421, with a sentence', async () => {
    const own = new URL(server.baseUrl).host
    const others = ['evil.example', `evil.example:${server.port}`, `127.0.0.1:${server.port}`]
    others.push('localhost', 'localhost:1', `localhost.:${server.port}`, `${own}@evil.example`)
    const put = {
      method: 'PUT',
      headers: {
        authorization: `Bearer ${server.adminToken}`,
        'content-type': 'application/json',
      },
    }
    const settings = async () => (await ask(own, '/admin/api/settings', { ...put, ...get })).text
    const before = await settings()
    for (const host of others) {
      for (const [path, request] of [
        ['/mailbox', get],
        ['/oauth2/forgot-password', { body: 'identifier=alice' }],
        ['/oauth2/.well-known/openid-configuration', get],
        ['/admin/api/settings', { ...put, body: '{"require_email_verification":"true"}' }],
      ] as const) {
        const { status, text, headers } = await ask(host, path, request)
        expect(status, `${host} ${path}`).to.equal(421)
        expect(text).to.equal(`This server answers at ${server.baseUrl} alone.\n`)
        expect(headers).to.include({ 'cache-control': 'no-store' })
        expect(headers).to.not.have.any.keys('set-cookie', 'access-control-allow-origin')
      }
    }
    expect(await settings()).to.equal(before)
    const mailbox = await ask(own, '/mailbox', { ...get, headers: { accept: 'application/json' } })
    expect([mailbox.status, mailbox.text]).to.deep.equal([200, '[]'])
  })

  it('an honest request may write the name in capitals', async () => {
    expect((await ask(`LocalHost:${server.port}`, '/')).page).to.equal('home')
  })
})

for (const [what, more, schemes] of [
  ['that nobody declared', {}, [undefined, 'https', 'http']],
  ['that is declared', { TRUST_PROXY: '1' }, ['https']],
] as const) {
  describe(`Behind a proxy that ends TLS, ${what} (HDR-03, HDR-10)`, () => {
    const server = suiteExampleServer({ BASE_URL: 'https://id.example', ...more })

    it('every cookie is HttpOnly, SameSite=Lax and Secure, and addresses are https', async () => {
      for (const scheme of schemes) {
        const ask = (path: string) =>
          rawRequest(`http://127.0.0.1:${server.port}${path}`, {
            method: 'GET',
            headers: { host: 'id.example', ...(scheme && { 'x-forwarded-proto': scheme }) },
          })
        const started = await ask('/demo/start')
        const authorization = new URL(String(started.headers.location))
        const asked = await ask(authorization.pathname + authorization.search)
        expect(asked.status).to.equal(303)
        const cookies = [started, asked].flatMap(({ headers }) => headers['set-cookie'] ?? [])
        expect(cookies.length).to.be.above(2)
        for (const cookie of cookies) {
          const attributes = cookie.toLowerCase().split('; ')
          expect(attributes).to.include.members(['httponly', 'samesite=lax', 'secure'])
        }
        const { text } = await ask('/oauth2/.well-known/openid-configuration')
        expect(JSON.parse(text).token_endpoint).to.equal('https://id.example/oauth2/token')
      }
    })
  })
}

describe('Behind a proxy that ends TLS (HDR-13)', () => {
  const server = suiteExampleServer({ BASE_URL: 'https://id.example', TRUST_PROXY: '1' })

  const ask = (path: string, headers: Record<string, string> = {}) =>
    rawRequest(`http://127.0.0.1:${server.port}${path}`, {
      method: 'GET',
      headers: { host: 'id.example', 'x-forwarded-proto': 'https', ...headers },
    })

  it('addresses are those of the configuration, and 421 is the answer for any other host', async () => {
    const discovery = '/oauth2/.well-known/openid-configuration'
    for (const host of ['id.example', 'ID.example:443', 'id.example, id.example']) {
      const given = { host: host.split(',')[0] ?? '', 'x-forwarded-host': host }
      const { text } = await ask(discovery, { ...given, 'x-forwarded-proto': 'http' })
      const { token_endpoint, jwks_uri } = JSON.parse(text)
      expect([token_endpoint, jwks_uri]).to.deep.equal([
        'https://id.example/oauth2/token',
        'https://id.example/oauth2/jwks',
      ])
    }
    const evil = 'evil.example'
    const lists = [`id.example, ${evil}`, `${evil}, id.example`]
    for (const host of [evil, '[', '', 'id.example:80', ...lists]) {
      const answer = await ask(discovery, { 'x-forwarded-host': host })
      expect([answer.status, answer.text.split('\n').length], host).to.deep.equal([421, 2])
    }
    const other = await ask(discovery, { host: evil, 'x-forwarded-host': 'id.example' })
    expect(other.status).to.equal(421)
  })

  it('headers of a proxy that are long and odd are answered as any other', async () => {
    const spaces = ' '.repeat(7_000)
    const odd = [`a${spaces}b`, `https${spaces},`, ','.repeat(7_000), `${spaces}<script>`]
    for (const value of odd) {
      const page = await ask('/oauth2/forgot-password', { 'x-forwarded-proto': value })
      expect([page.status, page.page], value.slice(0, 10)).to.deep.equal([200, 'forgot-password'])
      expect(withoutOwnScript(page.text)).not.to.include('<script')
      const { status } = await ask('/oauth2/forgot-password', { 'x-forwarded-host': value })
      expect(status, value.slice(0, 10)).to.equal(421)
    }
    const long = { 'x-forwarded-host': ' a'.repeat(50_000) }
    const tooLong = await ask('/oauth2/forgot-password', long)
    expect(tooLong.status).to.equal(431)
    expect((await ask('/oauth2/forgot-password')).status).to.equal(200)
  })
})

/** What pages do to any text is shown in test/views/pages.test.ts; here, what answers repeat, and the example server. */
const PAYLOADS = [
  '"><script>alert(1)</script>',
  "' onmouseover='alert(1)",
  '</title></main></form><form action="https://evil.example"><input name=token>',
  '#{7007*7} !{7007*7} {{7007*7}} ${7007*7} <%= 7007*7 %>',
  '\u202Eevil\u2066<b>\u200B',
]

const PLAIN = 'plain'

/** Values of the fields, as a browser would send them. */
function valuesOf(html: string): Record<string, string> {
  const fields = read(html).find('input')
  return Object.fromEntries(
    fields.map(({ attribs }) => [attribs['name'] ?? '', attribs['value'] ?? '']),
  )
}

/** The page is the same but for texts, it leads nowhere else, and these fields come back as they were sent. */
function expectText(page: string, plain: string, fields: Record<string, string>): void {
  expect(skeletonOf(page)).to.deep.equal(skeletonOf(plain))
  expect(valuesOf(page)).to.include(fields)
  for (const { attribs } of read(page).all) {
    for (const place of ['href', 'src', 'action', 'formaction']) {
      expect(attribs[place] ?? '/').to.match(
        /^(https?:\/\/(localhost|127\.0\.0\.1)[:/]|\/(?!\/)|#[a-z]+$)/,
      )
    }
  }
}

describe('What is typed or carried, in answers of ours (XSS)', () => {
  const agent = createUserAgent()
  const h = suiteHarness()

  const FIELDS = ['client_id', 'redirect_uri', 'scope', 'state']
  const filled = (value: string) => Object.fromEntries(FIELDS.map((name) => [name, value]))

  const url = (path: string, fields: Record<string, string>) =>
    `${h.oauthUrl}/${path}?${new URLSearchParams(fields)}`
  const get = (path: string, fields: Record<string, string>) => agent.get(url(path, fields))
  const post = (path: string, form: Form, headers = {}) =>
    agent.post(`${h.oauthUrl}/${path}`, form, headers)

  const silent: Record<string, (value: string) => Promise<Answer>> = {
    'a token that nobody was given': (value) =>
      get('reset-password', { token: value, [value]: value }),
    'a token that nobody was given, posted': (value) =>
      post('reset-password', { token: value, password: value }),
    'a verification link that was made up': (value) =>
      get('verify-email', { ...filled(value), token: value, authorize_sig: value }),
    'the answer to a request': (value) =>
      post('forgot-password', { ...filled(value), identifier: value }),
    'the answer to a request for a verification': (value) =>
      post('resend-verification', { ...filled(value), username: value }),
    'an answer that is none': (value) =>
      post('verify-email/waiting', { ...filled(value), code: value }),
    'a field twice': (value) =>
      post('verify-email/waiting', `${`x=${encodeURIComponent(value)}`.repeat(2)}&x&x`),
    'a form from another site': (value) =>
      agent.post(url('forgot-password', { x: value }), { identifier: value }, EVIL),
    'a wrong method': (value) => agent.request('PUT', url('forgot-password', { x: value })),
    'a wrong type': (value) =>
      agent.request('POST', `${h.oauthUrl}/forgot-password`, {
        headers: { 'content-type': 'text/html' },
        body: value,
      }),
  }
  for (const [what, open] of Object.entries(silent)) {
    it(`the page after ${what} repeats nothing of it (XSS-08)`, async () => {
      const { text, status } = shapeOf(await open(PLAIN))
      for (const value of PAYLOADS) {
        const answer = shapeOf(await open(value))
        expect([answer.status, answer.text]).to.deep.equal([status, text])
      }
    })
  }

  it('no redirect has markup in its body (XSS-10)', async () => {
    await Promise.all(
      PAYLOADS.map(async (value) => {
        const login = await h.blockedLogin({ extra: { state: value } })
        const back = await login.opensLink()
        expect(back.status).to.equal(302)
        expect(new URL(back.location ?? '').searchParams.get('state')).to.equal(value)
        for (const element of skeletonOf(back.text)) expect(element).to.equal('a href')
      }),
    )
  })
})

describe('The pages of the example server (XSS)', () => {
  const server = suiteExampleServer()

  const newBrowser = () => createBrowser(server.baseUrl)
  const get = (path: string, query: Record<string, string>, browser = newBrowser()) =>
    browser.get(`${path}?${new URLSearchParams(query)}`)

  const OPEN: Record<string, (value: string) => Promise<Answer>> = {
    'the login page after a wrong password': async (value) => {
      const browser = createBrowser(server.baseUrl)
      const page = await browser.visit('/demo/start')
      const credentials = { username: value, password: value }
      return browser.postForm('/oauth2/login', { ...page.hidden, ...credentials })
    },
    'an error of the provider': (value) =>
      get('/oauth2/auth', { client_id: value, redirect_uri: value, scope: value }),
    'the code of a device': (value) => get('/oauth2/device', { user_code: value }),
    'an unknown interaction': (value) => get('/oauth2/login', { interaction: value }),
    'an unknown path': (value) => get(`/${encodeURIComponent(value)}`, { x: value }),
    'a callback of nobody': (value) =>
      get('/demo/callback', { state: value, error: value, error_description: value }),
  }
  for (const [what, open] of Object.entries(OPEN)) {
    it(`show ${what} as text`, async () => {
      const plain = await open(PLAIN)
      for (const value of PAYLOADS) {
        const answer = await open(value)
        const fields = plain.mode === 'refused' ? { username: value } : {}
        expectText(answer.text, plain.text, fields)
        expect(answer.status).to.equal(plain.status)
      }
    })
  }

  it('show an error of the client callback as text, in the browser that began it', async () => {
    const browser = createBrowser(server.baseUrl)
    const begun = await browser.get('/demo/start')
    const state = new URL(begun.location ?? '').searchParams.get('state') ?? ''
    const open = (value: string) =>
      get('/demo/callback', { state, error: 'x', error_description: value }, browser)
    const plain = await open(PLAIN)
    expect(plain.mode).to.equal('refused')
    for (const value of PAYLOADS) {
      const { text } = await open(value)
      expectText(text, plain.text, {})
    }
  })
})

const OWN_SCRIPT = "script(type='module' src=script blocking='render')"

/** What the host gives in an option, as it is. Nothing of a request can be there. */
const CAPTCHA = '.captcha!= captcha\n'

describe('The templates', () => {
  const folder = new URL('../../views/', import.meta.url)
  const templates = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(pug|txt)$/.test(name))
    .map((name) => [name, readFileSync(new URL(name, folder), 'utf8')] as const)

  it('hold no wording, no raw output, no data as names of attributes, no script and no handler (XSS-02, XSS-03, XSS-04)', () => {
    expect(templates.length).to.be.above(8)
    for (const [name, source] of templates) {
      expect(source.replace(CAPTCHA, ''), name).not.to.match(
        /!=(?!=)|!\{|#\{|&attributes|^\s*\||^\s*</m,
      )
      expect(source.replace(OWN_SCRIPT, ''), name).not.to.match(
        /^\s*(script|iframe|object|embed|base)\b/m,
      )
      // Mail programs know no other style sheets.
      if (name.startsWith('pages')) expect(source, name).not.to.match(/\bstyle\b(?!sheet)/)
      expect(source, name).not.to.match(/\bon[a-z]+\s*=|javascript:|formaction|http-equiv/i)
    }
  })
})
