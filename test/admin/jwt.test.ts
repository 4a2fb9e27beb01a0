import { constants, createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { expect } from 'chai'
import { CompactEncrypt, type JSONWebKeySet } from 'jose'
import { problemOf } from '../support/admin-requests.ts'
import {
  ADMIN_AUDIENCE,
  ADMIN_ISSUER,
  ADMIN_SCOPE,
  compact,
  encoded,
  jwkOf,
  secondsFromNow,
  tokenIssuer,
} from '../support/admin-tokens.ts'
import { CLIENT, CONFIDENTIAL, type Harness, startHarness } from '../support/harness.ts'
import { eventsOf } from '../support/observe.ts'
import { serve, type Served } from '../support/serve.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

const issuer = tokenIssuer()
const impostor = tokenIssuer()
const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const { RSA_PKCS1_PSS_PADDING } = constants
const es256 = { key: curve.privateKey, dsaEncoding: 'ieee-p1363' } as const

const right = issuer.token()
const [head = '', payload = '', signature = ''] = right.split('.')
const header = { alg: 'RS256', typ: 'at+jwt', kid: 'key-1' }
const hs256 = (secret: string | Buffer) => (input: Buffer) =>
  createHmac('sha256', secret).update(input).digest()
const nobody = () => Buffer.alloc(0)
const pem = issuer.publicKey.export({ type: 'spki', format: 'pem' }).toString()
const der = issuer.publicKey.export({ type: 'spki', format: 'der' })

function put({ baseUrl }: Harness, token: string, settings: Record<string, string>, more = {}) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...more }
  const body = JSON.stringify(settings)
  return fetch(`${baseUrl}/admin/api/settings`, { method: 'PUT', headers, body })
}

describe('A JWT as admin token (5.1)', () => {
  const h = suiteHarness({
    flows: {
      adminToken: undefined,
      trustedProxies: 1,
      adminJwt: {
        issuer: ADMIN_ISSUER,
        audience: ADMIN_AUDIENCE,
        algorithms: ['RS256', 'ES256'],
        keys: { keys: [...issuer.jwks.keys, { ...jwkOf(curve.publicKey), kid: 'curve' }] },
      },
    },
  })
  let networks = 0

  // Each from a network of its own, as failures are limited by network.
  const fromAnywhere = () => {
    networks += 1
    return { 'x-forwarded-for': `10.0.${networks >> 8}.${networks & 255}` }
  }

  let uses = 0
  async function expectWorks(token: string) {
    uses += 1
    const settings = { smtp_username: `user ${uses}` }
    const response = await put(h, token, settings, fromAnywhere())
    expect(response.status).to.equal(200)
    expect(await response.json()).to.include(settings)
  }

  async function expectRefused(token: string, status: number, error: string) {
    const before = await h.store.settings.read()
    const events = h.events.length
    const response = await put(h, token, { smtp_username: 'mallory' }, fromAnywhere())
    expect(response.status).to.equal(status)
    expect(response.headers.get('content-type')).to.match(/^application\/problem\+json/)
    expect(response.headers.get('www-authenticate')).to.match(/^Bearer /)
    expect(response.headers.get('www-authenticate') ?? '').to.include(error)
    const answer = await response.text()
    expect(await h.store.settings.read()).to.deep.equal(before)
    const told = h.events.slice(events)
    expect(told.map(({ type }) => type)).to.deep.equal(['admin_auth_failed'])
    for (const text of [answer, JSON.stringify(told)]) {
      for (const part of token.split('.').filter(({ length }) => length > 20)) {
        expect(text).not.to.include(part)
      }
    }
    await expectWorks(issuer.token())
  }

  const rightOnes: Record<string, string> = {
    'by RS256': issuer.token(),
    'by another allowed algorithm': compact(
      { alg: 'ES256', typ: 'at+jwt', kid: 'curve' },
      issuer.claims(),
      (input) => sign('sha256', input, es256),
    ),
    'for several audiences': issuer.token({ aud: ['https://other.example', ADMIN_AUDIENCE] }),
    'with more than the scope': issuer.token({ scope: `openid ${ADMIN_SCOPE} profile` }),
    'of the type in full, in any case (RFC 9068, 4)': issuer.token(
      {},
      { typ: 'application/AT+JWT' },
    ),
    'without kid, where one key fits': issuer.token({}, { kid: undefined }),
    'issued long ago': issuer.token({ iat: 0 }),
    'without iat': issuer.token({ iat: undefined }),
    'valid since now': issuer.token({ nbf: secondsFromNow(0) }),
    'that names the keys of somebody else, which nobody looks at': issuer.token(
      {},
      { jwk: impostor.jwks.keys[0], jku: 'https://evil.example/jwks' },
    ),
  }
  for (const [what, token] of Object.entries(rightOnes)) {
    it(`works ${what}`, () => expectWorks(token))
  }

  it('is told in the audit log by its subject', async () => {
    await expectWorks(issuer.token({ sub: 'ann@example.com' }))
    expect(eventsOf(h, 'settings_changed').at(-1)?.details).to.deep.equal({
      keys: ['smtp_username'],
      actor: 'sub:ann@example.com',
    })
  })

  const signedBy = (alg: string, signer: (input: Buffer) => Buffer) =>
    compact({ ...header, alg }, issuer.claims(), signer)
  const pss = { key: issuer.privateKey, padding: RSA_PKCS1_PSS_PADDING }
  const evil = 'https://evil.example'
  const [ownKey] = impostor.jwks.keys
  const wrong: Record<string, string> = {
    'with alg none': signedBy('none', nobody),
    'with alg None': signedBy('None', nobody),
    'with alg none and a signature': signedBy('none', hs256('x')),
    'without alg': issuer.token({}, { alg: undefined }),
    'with several algorithms': issuer.token({}, { alg: ['RS256'] }),
    'by HS256 with the public key as PEM': signedBy('HS256', hs256(pem)),
    'by HS256 with the public key as PEM without its end': signedBy('HS256', hs256(pem.trim())),
    'by HS256 with the public key as DER': signedBy('HS256', hs256(der)),
    'by HS256 with the public key as JWK': signedBy(
      'HS256',
      hs256(JSON.stringify(issuer.jwks.keys[0])),
    ),
    'by HS256 with nothing': signedBy('HS256', hs256('')),
    'by RS512, which is not allowed': signedBy('RS512', (input) =>
      sign('sha512', input, issuer.privateKey),
    ),
    'by PS256, which is not allowed': signedBy('PS256', (input) => sign('sha256', input, pss)),
    'by an algorithm of another kind of key': issuer.token({}, { alg: 'ES256' }),
    'by another issuer with the same kid': impostor.token(),
    'by another issuer, with its key in jwk': impostor.token({}, { jwk: ownKey }),
    'by another issuer, with its key in jwk, and no kid': impostor.token(
      {},
      { jwk: ownKey, kid: undefined },
    ),
    'by another issuer, with its keys at jku': impostor.token({}, { jku: evil }),
    'by another issuer, with its certificate at x5u': impostor.token({}, { x5u: evil }),
    'by another issuer, with its certificate in x5c': impostor.token(
      {},
      { x5c: [der.toString('base64')] },
    ),
    'with an unknown kid': issuer.token({}, { kid: 'key-2' }),
    'with a kid that is a path': impostor.token({}, { kid: '../../../../dev/null' }),
    'with a kid that is SQL': impostor.token({}, { kid: "x' UNION SELECT 'key-1" }),
    'with a kid that is an operator': impostor.token({}, { kid: { $ne: '' } }),
    'of another iss': issuer.token({ iss: 'https://issuer.example.evil.example' }),
    'of an iss with one slash more': issuer.token({ iss: `${ADMIN_ISSUER}/` }),
    'of several iss': issuer.token({ iss: [ADMIN_ISSUER] }),
    'without iss': issuer.token({ iss: undefined }),
    'for another aud': issuer.token({ aud: 'https://other.example' }),
    'for an aud that is the begin of the right one': issuer.token({
      aud: ADMIN_AUDIENCE.slice(0, -1),
    }),
    'for no aud of several': issuer.token({ aud: ['https://other.example', 'x'] }),
    'for an empty list of aud': issuer.token({ aud: [] }),
    'without aud': issuer.token({ aud: undefined }),
    'of typ JWT': issuer.token({}, { typ: 'JWT' }),
    'of typ logout+jwt': issuer.token({}, { typ: 'logout+jwt' }),
    'of a typ that is no text': issuer.token({}, { typ: ['at+jwt'] }),
    'without typ': issuer.token({}, { typ: undefined }),
    'without exp': issuer.token({ exp: undefined }),
    'after exp': issuer.token({ exp: secondsFromNow(-60) }),
    'with exp as a text': issuer.token({ exp: String(secondsFromNow(600)) }),
    'with exp as null': issuer.token({ exp: null }),
    'before nbf': issuer.token({ nbf: secondsFromNow(600) }),
    'with nbf as a text': issuer.token({ nbf: '0' }),
    'without sub': issuer.token({ sub: undefined }),
    'with an empty sub': issuer.token({ sub: '' }),
    'with a sub that is a number': issuer.token({ sub: 42 }),
    'with a sub that is an object': issuer.token({ sub: { $ne: '' } }),
    'with a sub that is true': issuer.token({ sub: true }),
    'with a critical extension': issuer.token({}, { crit: ['exp'], exp: secondsFromNow(600) }),
    'with an empty list of critical extensions': issuer.token({}, { crit: [] }),
    'with an unencoded payload (RFC 7797)': issuer.token({}, { crit: ['b64'], b64: false }),
    'with a changed payload': `${head}.${encoded(issuer.claims({ sub: 'mallory' }))}.${signature}`,
    'with a changed header': `${encoded({ ...header, x: 1 })}.${payload}.${signature}`,
    'with a payload that is no JSON': `${head}.${Buffer.from('x').toString('base64url')}.${signature}`,
    'with a cut signature': right.slice(0, -4),
    'with an empty signature': `${head}.${payload}.`,
    'with the signature of another token': `${head}.${payload}.${impostor.token().split('.')[2]}`,
    'with padding': `${right}==`,
    'with characters of base64 that are none of base64url': `${head}.${payload}.+/${signature.slice(2)}`,
    'in four parts': `${right}.${signature}`,
    'in two parts': `${head}.${payload}`,
    'in one part': head,
    'of dots alone': '..',
    'as JSON': JSON.stringify({ payload, signatures: [{ protected: head, signature }] }),
  }
  for (const [what, token] of Object.entries(wrong)) {
    it(`is refused ${what}: 401, and nothing changes (ADM-08)`, () =>
      expectRefused(token, 401, 'error="invalid_token"'))
  }

  it('is refused encrypted (RFC 7516): 401, and nothing changes', async () => {
    const encrypted = await new CompactEncrypt(Buffer.from(right))
      .setProtectedHeader({ alg: 'RSA-OAEP-256', enc: 'A256GCM', typ: 'at+jwt', kid: 'key-1' })
      .encrypt(issuer.publicKey)
    await expectRefused(encrypted, 401, 'error="invalid_token"')
  })

  it('is refused with white space in it: 401, and nothing changes', () =>
    expectRefused(`${head}.${payload}. ${signature}`, 401, 'Bearer'))

  const narrow: Record<string, unknown> = {
    'no scope': undefined,
    'an empty scope': '',
    'another scope': 'openid profile',
    'a scope that begins with the right one': `${ADMIN_SCOPE}istrator`,
    'the begin of the right scope': 'account-flows',
    'the right scope behind something else': `x${ADMIN_SCOPE}`,
    'the right scope in upper case': ADMIN_SCOPE.toUpperCase(),
    'the right scope behind a comma': `openid,${ADMIN_SCOPE}`,
    'the right scope in a list': [ADMIN_SCOPE],
    'the right scope as a name': { [ADMIN_SCOPE]: true },
  }
  for (const [what, scope] of Object.entries(narrow)) {
    it(`is refused with ${what}: 403, and nothing changes`, () =>
      expectRefused(issuer.token({ scope }), 403, 'error="insufficient_scope"'))
  }
})

const rotated = tokenIssuer('key-2')

/** Answers the issuer's keys, or fails in one of the ways there are. */
type Mode = 'keys' | 'gone' | 'failing' | 'garbage' | 'no set' | 'elsewhere'

describe('The keys of a JWT as admin token, at an address', () => {
  let served: Served
  let address: URL
  let jwks: JSONWebKeySet
  let mode: Mode
  let fetched: string[]
  let logged: string[]
  let h: Harness

  beforeEach(async () => {
    jwks = issuer.jwks
    mode = 'keys'
    fetched = []
    logged = []
    served = await serve((req, res) => {
      fetched.push(req.url ?? '')
      const isMoved = mode === 'elsewhere' && req.url === '/jwks'
      if (mode === 'gone') req.socket.destroy()
      else if (mode === 'failing') res.writeHead(500).end(JSON.stringify(jwks))
      else if (mode === 'garbage') res.end('<p>no keys</p>')
      else if (mode === 'no set') res.end('{"keys":"none"}')
      else if (isMoved) res.writeHead(302, { location: '/moved' }).end()
      else res.end(JSON.stringify(jwks))
    })
    address = new URL(`${served.url}/jwks`)
    h = await startWith({ issuer: ADMIN_ISSUER, audience: ADMIN_AUDIENCE, keys: address })
  })

  afterEach(async () => {
    await h.close()
    await served.close()
  })

  const startWith = (adminJwt: { issuer: string; audience: string; keys: URL }) =>
    startHarness({
      flows: {
        adminToken: undefined,
        adminJwt: { algorithms: ['RS256'], ...adminJwt },
        log: (level, message, details) =>
          logged.push(`${level} ${message} ${JSON.stringify(details)}`),
      },
    })

  async function expectWorks(token: string) {
    expect((await put(h, token, { smtp_username: 'ann' })).status).to.equal(200)
    expect((await h.store.settings.read()).values).to.include({ smtp_username: 'ann' })
  }

  async function expectRefused(token: string, status: number, at = h) {
    const before = await at.store.settings.read()
    const response = await put(at, token, { smtp_username: 'mallory' })
    await problemOf(response, status)
    expect(await at.store.settings.read()).to.deep.equal(before)
    return response
  }

  it('are fetched once, and not before a token needs them', async () => {
    expect(fetched).to.deep.equal([])
    await expectWorks(issuer.token())
    await expectWorks(issuer.token())
    expect(fetched).to.deep.equal(['/jwks'])
  })

  for (const failure of ['gone', 'failing', 'garbage', 'no set', 'elsewhere'] as const) {
    it(`are not there (${failure}): 503 and not 401, nothing changes, and the log says so`, async () => {
      mode = failure
      const response = await expectRefused(issuer.token(), 503)
      expect(response.headers.get('retry-after')).to.equal('60')
      expect(response.headers.has('www-authenticate')).to.equal(false)
      expect(fetched).to.deep.equal(['/jwks'])
      expect(h.events.map(({ type, reason }) => [type, reason])).to.deep.equal([
        ['admin_auth_failed', 'keys_unavailable'],
      ])
      expect(logged.filter((line) => line.startsWith('error')).join()).to.include('keys')
      mode = 'keys'
      await moveTime(60_000)
      await expectWorks(issuer.token())
    })
  }

  it('may be several that fit, while a token names none', async () => {
    jwks = { keys: [...issuer.jwks.keys, ...rotated.jwks.keys] }
    await expectWorks(rotated.token({}, { kid: undefined }))
    await expectWorks(issuer.token({}, { kid: undefined }))
    await expectRefused(impostor.token({}, { kid: undefined }), 401)
    await expectRefused(rotated.token({ exp: 1 }, { kid: undefined }), 401)
  })

  it('are not asked for by each of many tokens while they are not there', async () => {
    mode = 'gone'
    for (let count = 0; count < 10; count += 1) await expectRefused(issuer.token(), 503)
    expect(fetched.length).to.be.below(10)
  })

  it('once fetched are enough while the address is down', async () => {
    await expectWorks(issuer.token())
    mode = 'gone'
    await expectWorks(issuer.token())
    await expectRefused(impostor.token(), 401)
  })

  it('are not fetched for what no key could make right', async () => {
    for (const token of [
      'no-token',
      'x.y.z',
      issuer.token({}, { alg: 'HS256' }),
      issuer.token({}, { alg: 'none' }),
      issuer.token({}, { crit: ['x'], x: 1 }),
    ]) {
      await expectRefused(token, 401)
    }
    expect(fetched).to.deep.equal([])
    await expectWorks(issuer.token())
  })

  it('are never fetched from where a token says', async () => {
    const evil = new URL('/evil', address).href
    for (const claim of ['jku', 'x5u', 'kid', 'iss']) {
      await expectRefused(impostor.token({ iss: evil }, { [claim]: evil }), 401)
    }
    expect(fetched.filter((path) => path !== '/jwks')).to.deep.equal([])
    await expectWorks(issuer.token())
  })

  it('are not fetched again and again for unknown kids, and are found once rotated', async () => {
    await expectWorks(issuer.token())
    jwks = { keys: [...rotated.jwks.keys] }
    for (let kid = 0; kid < 20; kid += 1) {
      await expectRefused(issuer.token({}, { kid: `unknown ${kid}` }), 401)
    }
    expect(fetched).to.have.length(1)
    // The library fetches them again after half a minute at the earliest.
    await moveTime(31_000)
    expect((await put(h, rotated.token(), { smtp_username: 'bob' })).status).to.equal(200)
    expect((await h.store.settings.read()).values).to.include({ smtp_username: 'bob' })
    await expectRefused(issuer.token(), 401)
  })

  it('of a node-oidc-provider let in its access tokens for us with the scope, and no other access token and no id_token', async () => {
    const provider = await startHarness({
      provider: {
        scopes: ['openid', 'offline_access', 'email', ADMIN_SCOPE],
        features: {
          devInteractions: { enabled: false },
          clientCredentials: { enabled: true },
          resourceIndicators: {
            enabled: true,
            defaultResource: () => ADMIN_AUDIENCE,
            getResourceServerInfo: () => ({
              scope: ADMIN_SCOPE,
              audience: CLIENT.client_id,
              accessTokenFormat: 'jwt',
            }),
          },
        },
      },
      clients: [CLIENT, { ...CONFIDENTIAL, scope: `${CONFIDENTIAL.scope} ${ADMIN_SCOPE}` }],
    })
    const admin = await startWith({
      issuer: provider.oauthUrl,
      audience: CLIENT.client_id,
      keys: new URL(`${provider.oauthUrl}/jwks`),
    })

    async function tokenOfClient(asked: { scope?: string }): Promise<string> {
      const credentials = `${CONFIDENTIAL.client_id}:${encodeURIComponent(CONFIDENTIAL.client_secret)}`
      const response = await fetch(`${provider.oauthUrl}/token`, {
        method: 'POST',
        headers: { authorization: `Basic ${btoa(credentials)}` },
        body: new URLSearchParams({ grant_type: 'client_credentials', ...asked }),
      })
      const { access_token: token } = await response.json()
      expect(token).to.be.a('string')
      return String(token)
    }

    const user = await provider.addUser({ username: 'reader' })
    const request = await provider.party.begin()
    const agent = createUserAgent()
    const login = await provider.login(agent, request.url, user.username)
    const answer = await provider.follow(agent, login)
    const tokens = await provider.party.exchange(request, answer.location ?? '')
    expect(tokens.id_token).to.be.a('string')
    await expectRefused(String(tokens.id_token), 401, admin)
    await expectRefused(tokens.access_token, 401, admin)
    await expectRefused(await tokenOfClient({}), 403, admin)

    const token = await tokenOfClient({ scope: ADMIN_SCOPE })
    expect((await put(admin, token, { smtp_username: 'client' })).status).to.equal(200)
    expect(admin.events.at(-1)?.details).to.include({ actor: `sub:${CONFIDENTIAL.client_id}` })
    await admin.close()
    await provider.close()
  })
})
