import { expect } from 'chai'
import { suiteExampleServer } from '../support/example-server.ts'
import { FORM, rawRequest, type RawAnswer, type RawRequest } from '../support/raw-request.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'
import { blockedLogin } from '../support/person.ts'

const big = 'x'.repeat(70_000)
const get: RawRequest = { method: 'GET' }
const EVIL = { origin: 'https://evil.example' }

const UNFRAMED = {
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}

/** A page that nobody frames, stores, sniffs, indexes or learns of, and that runs nothing. */
function expectPage({ headers, text, page }: RawAnswer, what: string): void {
  expect(page, what).to.be.a('string')
  const policy = String(headers['content-security-policy'])
  expect(policy.split('; '), what).to.include.members([
    "default-src 'none'",
    "style-src 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ])
  expect(policy, what).to.match(/form-action 'self'/)
  expect(policy, what).not.to.match(/unsafe|script-src (?!'self';)|\*|data:/)
  const type = 'text/html; charset=utf-8'
  expect(headers, what).to.include({ 'content-type': type, 'x-robots-tag': 'noindex', ...UNFRAMED })
  expect(headers['permissions-policy'], what).to.include('camera=()')
  expectNoTraces({ headers, text }, what)
  expect(withoutOwnScript(text), what).not.to.match(/<script|<style|\sstyle=|\son[a-z]+=/)
}

function withoutOwnScript(html: string): string {
  const own = /<script type="module" src="\/oauth2\/account-flows\.js\?v=[\w-]{12}"><\/script>/
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

  before(async () => {
    await h.addUser({ username: 'ann' })
  })

  const asked: Asked[] = [
    ['/forgot-password', 200, get],
    ['/forgot-password', 200, { body: 'identifier=nobody' }],
    ['/forgot-password', 400, { body: 'identifier=' }],
    ['/forgot-password', 400, { body: 'identifier=%' }],
    ['/forgot-password', 403, { body: 'identifier=ann', headers: EVIL }],
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

  it('so have the form for a new password, the blocked login, and the answers to their forms (HDR-07)', async () => {
    const ann = await h.users.findByUsername('ann')
    if (!ann) throw new Error('Ann is gone')
    const link = await ann.forgets()
    const form = await rawRequest(link, get)
    expectPage(form, 'form')
    expect(form.headers['cross-origin-opener-policy']).to.equal('same-origin')
    const token = new URL(link).searchParams.get('token') ?? ''
    const url = `${h.oauthUrl}/reset-password`
    const body = `token=${token}&password=`
    expectPage(await rawRequest(url, { body }), 'refused')
    const done = `${body}long+enough&confirm_password=long+enough`
    expectPage(await rawRequest(url, { body: done }), 'done')
    const { blocked, link: verification } = await blockedLogin(h)
    expect(blocked.headers.get('content-security-policy')).to.include("frame-ancestors 'none'")
    expect(Object.fromEntries(blocked.headers)).to.include(UNFRAMED)
    const opened = await rawRequest(verification, get)
    expect(opened.status).to.equal(302)
    expectNoTraces(opened, 'resumed')
  })

  const withForms = [
    'forgot-password',
    'reset-password',
    'verify-email/waiting',
    'resend-verification',
  ]
  for (const path of [...withForms, 'not-me'])
    it(`${path} answers no method but those of its form, and says which (HDR-05)`, async () => {
      for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND']) {
        const answer = await rawRequest(`${h.oauthUrl}/${path}`, { method })
        expect(answer.status, method).to.equal(405)
        expect(answer.headers.allow, method).to.match(/POST$/)
        expectPage(answer, method)
      }
    })

  it('says nothing of what failed on our side (HDR-08)', async () => {
    const { find } = h.store.resetTokens
    h.store.resetTokens.find = () => Promise.reject(new Error('Error: mongodb://secret:1'))
    try {
      const answer = await rawRequest(`${h.oauthUrl}/reset-password?token=${'A'.repeat(43)}`, get)
      expect([answer.status, answer.mode]).to.deep.equal([500, 'error'])
      expect(answer.text).not.to.include('secret')
      expectPage(answer, 'failed')
    } finally {
      h.store.resetTokens.find = find
    }
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

describe('Behind a proxy that ends TLS, and that nobody declared (HDR-03)', () => {
  const server = suiteExampleServer({ BASE_URL: 'https://id.example' })

  it('every cookie is Secure, and addresses are https, whether or not the proxy says so', async () => {
    for (const headers of [{}, { 'x-forwarded-proto': 'https' }, { 'x-forwarded-proto': 'http' }]) {
      const ask = (path: string) =>
        rawRequest(`http://127.0.0.1:${server.port}${path}`, {
          method: 'GET',
          headers: { host: 'id.example', ...headers },
        })
      const started = await ask('/demo/start')
      const authorization = new URL(String(started.headers.location))
      const asked = await ask(authorization.pathname + authorization.search)
      const cookies = [started, asked].flatMap((answer) => answer.headers['set-cookie'] ?? [])
      expect(cookies.length).to.be.above(2)
      for (const cookie of cookies) expect(cookie.toLowerCase().split('; ')).to.include('secure')
      const { text } = await ask('/oauth2/.well-known/openid-configuration')
      expect(JSON.parse(text).token_endpoint).to.equal('https://id.example/oauth2/token')
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

describe('Behind a proxy that ends TLS (HDR-03, HDR-10, HDR-13)', () => {
  const server = suiteExampleServer({ BASE_URL: 'https://id.example', TRUST_PROXY: '1' })

  const ask = (path: string, headers: Record<string, string> = {}) =>
    rawRequest(`http://127.0.0.1:${server.port}${path}`, {
      method: 'GET',
      headers: { host: 'id.example', 'x-forwarded-proto': 'https', ...headers },
    })

  it('every cookie is HttpOnly, SameSite=Lax and Secure', async () => {
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
    for (const host of [
      evil,
      '[',
      '',
      'id.example:80',
      `id.example, ${evil}`,
      `${evil}, id.example`,
    ]) {
      const answer = await ask(discovery, { 'x-forwarded-host': host })
      expect([answer.status, answer.text.split('\n').length], host).to.deep.equal([421, 2])
    }
    expect(
      (await ask(discovery, { host: evil, 'x-forwarded-host': 'id.example' })).status,
    ).to.equal(421)
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
