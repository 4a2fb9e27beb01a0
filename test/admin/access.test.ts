import { constants, createHmac, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { expect } from 'chai'
import { assert, asyncProperty, string } from 'fast-check'
import { CompactEncrypt, type JSONWebKeySet } from 'jose'
import { createTokenCheck } from '../../src/admin/authentication.ts'
import { ADMIN_SCOPES } from '../../src/admin/options.ts'
import { createAdminClient } from '../../src/admin/client.ts'
import { adminOf, changesNothing, newNetwork, problemOf } from '../support/admin.ts'
import {
  onEachStore,
  ADMIN_TOKEN,
  CLIENT,
  CONFIDENTIAL,
  startHarness,
  type Harness,
  suiteHarness,
} from '../support/harness.ts'
import { dump } from '../support/records.ts'
import { serve, type Served } from '../support/serve.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

const LIMIT = 60
const GUESS = 'canary-guess'

type Headers = Record<string, string>

interface Sent extends RequestInit {
  path?: string
  /** Of the setting. */
  value?: string
}

/** Changes a setting, with whatever shows who asks; or sends something else. */
function put({ baseUrl }: Harness, headers: Headers, sent: Sent = {}): Promise<Response> {
  const { path = '/settings', value = 'somebody', ...init } = sent
  return fetch(`${baseUrl}/admin/api${path}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ smtp_username: value }),
    ...init,
  })
}

/** To read what a change would change. */
const GET = { method: 'GET', body: null }

const shows = (token: string): Headers => ({ authorization: `Bearer ${token}` })

/** The settings as whoever has a right token sees them. */
const settingsSeen = ({ baseUrl }: Harness, token: string) =>
  createAdminClient(baseUrl, token).getSettings()

let uses = 0

/** Whoever shows this token changes a setting. */
async function expectWorks(h: Harness, token: string) {
  uses += 1
  const value = `user ${uses}`
  const response = await put(h, shows(token), { value })
  expect(response.status).to.equal(200)
  expect(await response.json()).to.include({ smtp_username: value })
}

describe('createTokenCheck() (5.1)', () => {
  const TOKEN = 'an-admin-token-of-the-tests-long-enough'
  /** What the first of these may do, and the second. */
  const scopes = ADMIN_SCOPES.map((scope) => [scope])
  const checkOf = (...tokens: string[]) =>
    createTokenCheck(tokens.map((token, at) => ({ token, scopes: scopes[at] ?? [] })))

  it('takes the token itself, and nothing shorter, longer or alike; it never throws (ADM-04, ADM-05, TIM-09)', async () => {
    const check = checkOf(TOKEN)
    const lengths = [0, 1, TOKEN.length - 1, TOKEN.length, TOKEN.length + 1, 1_000_000]
    const longer = [`${TOKEN}x`, `${TOKEN} `, ` ${TOKEN}`, `${TOKEN}\0`, TOKEN + TOKEN]
    const others = [
      ...lengths.map((length) => 'x'.repeat(length)),
      ...[...TOKEN].flatMap((_, index) => [TOKEN.slice(0, index), TOKEN.slice(index + 1)]),
      ...[...TOKEN].map((_, index) => `${TOKEN.slice(0, index)}X${TOKEN.slice(index + 1)}`),
      ...longer,
      TOKEN.toUpperCase(),
      'undefined',
    ]
    for (const other of others)
      expect(await check(other), other.slice(0, 50)).to.equal('wrong_token')
    const isRight = async (text: string) => (await check(text)) !== 'wrong_token'
    const holds = async (text: string) => (await isRight(text)) === (text === TOKEN)
    await assert(asyncProperty(string({ maxLength: 200 }), holds))
    expect(await check(TOKEN)).to.include({ scopes: scopes[0] })
  })

  it('takes each of several that are in force during a rotation, tells which one it was, and takes nothing else (ADM-13, ADM-15)', async () => {
    const check = checkOf(TOKEN, `next-${TOKEN}`)
    for (const [at, token] of [TOKEN, `next-${TOKEN}`].entries())
      expect(await check(token)).to.include({ scopes: scopes[at] })
    for (const other of [`${TOKEN},next-${TOKEN}`, `last-${TOKEN}`, 'next-', ''])
      expect(await check(other)).to.equal('wrong_token')
    // Nobody is let in where there is no token.
    for (const presented of ['', 'undefined', 'null', TOKEN])
      expect(await checkOf()(presented)).to.equal('wrong_token')
  })
})

describe('Whoever does not show the admin token: 401, WWW-Authenticate, and an event (5.1, ADM-01, ADM-03, ADM-07)', () => {
  const h = suiteHarness({ flows: { trustedProxies: 1 } })

  const upper = ADMIN_TOKEN.toUpperCase()
  const header = (authorization: string) => ({ authorization })
  const presented: [what: string, headers: Headers, sent?: Sent][] = [
    ['no header', {}],
    ['an empty header', header('')],
    ['no token', header('Bearer')],
    ['an empty token', header('Bearer ')],
    ['Bearer undefined', shows('undefined')],
    ['Bearer null', shows('null')],
    ['it and another', shows(`${ADMIN_TOKEN}, Bearer x`)],
    ['it in upper case', shows(upper)],
    ['it with padding', shows(`${ADMIN_TOKEN}=`)],
    ['it in quotes', shows(`"${ADMIN_TOKEN}"`)],
    ['it without a scheme', header(ADMIN_TOKEN)],
    ['another scheme', header(`Basic ${btoa(`admin:${ADMIN_TOKEN}`)}`)],
    ['it as a token of another scheme', header(`Token ${ADMIN_TOKEN}`)],
    ['it in a cookie', { cookie: `access_token=${ADMIN_TOKEN}; Authorization=${ADMIN_TOKEN}` }],
    ['it in another header', { 'x-admin-token': ADMIN_TOKEN, 'x-authorization': ADMIN_TOKEN }],
    ['it in the query', {}, { path: `/settings?access_token=${ADMIN_TOKEN}` }],
    ['it in the body', {}, { body: JSON.stringify({ access_token: ADMIN_TOKEN }) }],
    ['nothing, before the method is looked at', {}, { ...GET, method: 'DELETE' }],
    ['nothing, before the body is looked at', {}, { body: 'x'.repeat(70_000) }],
    ['nothing, to an operation without a body', {}, { path: '/keys/rotate', method: 'POST' }],
  ]
  for (const [what, headers, sent] of presented) {
    it(`${what}, and nothing changes`, () =>
      changesNothing(h, async () => {
        const failed = h.eventsOf('admin_auth_failed').length
        const from = { ...newNetwork(), ...headers }
        for (const more of [sent, { ...sent, ...GET }]) {
          const refused = await put(h, from, more)
          expect(refused.headers.get('www-authenticate')).to.match(/^Bearer/)
          expect(refused.headers.has('access-control-allow-origin')).to.equal(false)
          await problemOf(refused, 401)
        }
        const events = h.eventsOf('admin_auth_failed').slice(failed)
        expect(events).to.have.length(2)
        for (const token of [ADMIN_TOKEN, upper])
          expect(JSON.stringify(events)).not.to.include(token.slice(1, -1))
        expect(JSON.stringify(events)).not.to.include('Bearer')
        expect((await put(h, { ...from, ...shows(ADMIN_TOKEN) }, GET)).status).to.equal(200)
      }))
  }

  it('but the scheme is taken in any case (RFC 9110, 11.1)', async () => {
    expect((await put(h, header(`bearer ${ADMIN_TOKEN}`), GET)).status).to.equal(200)
  })

  const guess = (from: Headers, token = GUESS) => put(h, { ...from, ...shows(token) })
  const withToken = (from: Headers) => put(h, { ...from, ...shows(ADMIN_TOKEN) })

  it('is counted alike, whatever is shown, wherever and with whatever address in front, and not where the token is right', async () => {
    const from = newNetwork()
    const kinds: ((count: number) => Promise<Response>)[] = [
      (count) => guess(from, `${GUESS}-${count}`),
      () => put(h, from),
      () => put(h, { ...from, ...header(`Basic ${btoa(GUESS)}`) }),
      (count) => guess({ 'x-forwarded-for': `203.0.113.${count}, ${from['x-forwarded-for']}` }),
      () => put(h, from, { ...GET, path: '/nothing' }),
      () => put(h, from, { ...GET, path: '/audit', method: 'DELETE' }),
    ]
    for (let count = 0; count < LIMIT / kinds.length; count += 1) {
      for (const kind of kinds) expect((await kind(count)).status).to.equal(401)
    }
    for (const kind of kinds) expect((await kind(99)).status).to.equal(429)

    const other = newNetwork()
    for (let count = 0; count <= LIMIT; count += 1) {
      for (const each of [from, other]) expect((await withToken(each)).status).to.equal(200)
    }
    expect((await guess(other)).status).to.equal(401)
    const told = h.eventsOf('admin_auth_failed').map(({ address }) => address)
    expect(told.filter((each) => each === other['x-forwarded-for'])).to.have.length(1)
  })
})

onEachStore('Many requests without a right admin token, at once (5.1)', (technology) => {
  const h = suiteHarness({ technology, flows: { trustedProxies: 1 } })

  it(`are answered 401 ${LIMIT} times a minute in a network, and then 429 with Retry-After; told by ${LIMIT + 1} events, none of which holds what was shown; nothing changes, and neither the right token nor another network is kept out (ADM-11)`, async () => {
    const guess = (from: Headers) => put(h, { ...from, ...shows(GUESS) })
    const from = newNetwork()
    const before = await settingsSeen(h, ADMIN_TOKEN)
    const guesses = Array.from({ length: 100 }, () => guess(from))
    const statuses = (await Promise.all(guesses)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).to.have.length(LIMIT)
    expect(statuses.filter((status) => status === 429)).to.have.length(100 - LIMIT)
    const refused = await guess(from)
    expect(refused.headers.get('retry-after')).to.match(/^[1-9]\d?$/)
    expect(Number(refused.headers.get('retry-after'))).to.be.at.most(60)
    await problemOf(refused, 429, 'too_many_requests')
    const told = h.eventsOf('admin_auth_failed')
    const reasons = told.map(({ reason }) => reason)
    expect(reasons.filter((reason) => reason === 'wrong_token')).to.have.length(LIMIT)
    expect(reasons.filter((reason) => reason === 'too_many_requests')).to.have.length(1)
    expect(reasons).to.have.length(LIMIT + 1)
    expect(told[0]).to.include({ address: from['x-forwarded-for'] })
    expect(await dump(h)).not.to.include(GUESS)
    const audited = await adminOf(h).listAudit({ type: ['admin_auth_failed'], limit: 1000 })
    expect(audited.events).to.have.length(LIMIT + 1)
    expect(await settingsSeen(h, ADMIN_TOKEN)).to.deep.equal(before)
    expect((await guess(newNetwork())).status).to.equal(401)
    expect((await put(h, { ...from, ...shows(ADMIN_TOKEN) })).status).to.equal(200)
    expect((await guess(from)).status).to.equal(429)
  })
})

const ADMIN_ISSUER = 'https://issuer.example'
const ADMIN_AUDIENCE = 'https://accounts.example/admin'
const ADMIN_SCOPE = 'account-flows:admin'

type Part = Record<string, unknown>

/** An issuer of admin tokens: one RSA key, and what it can sign with it, be it right or not. */
function tokenIssuer(kid = 'key-1') {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  /** The claims of a right token, with these changes; `undefined` takes away. */
  const claims = (changes: Part = {}): Part => ({
    iss: ADMIN_ISSUER,
    aud: ADMIN_AUDIENCE,
    sub: 'operator@example.com',
    scope: ADMIN_SCOPE,
    iat: secondsFromNow(0),
    exp: secondsFromNow(600),
    ...changes,
  })
  const header = { alg: 'RS256', typ: 'at+jwt', kid }
  return {
    publicKey,
    privateKey,
    jwk: { ...jwkOf(publicKey), kid, use: 'sig' },
    header,
    claims,
    /** A right token, but for these changes. */
    token: (changes: Part = {}, more: Part = {}) =>
      compact({ ...header, ...more }, claims(changes), (input) =>
        sign('sha256', input, privateKey),
      ),
  }
}

/** A JWS in compact form (RFC 7515, 7.1). */
function compact(header: Part, payload: Part, signer: (input: Buffer) => Buffer): string {
  const input = `${encoded(header)}.${encoded(payload)}`
  return `${input}.${signer(Buffer.from(input)).toString('base64url')}`
}

function encoded(part: unknown): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}

function jwkOf(key: KeyObject) {
  const { kty = '', ...jwk } = key.export({ format: 'jwk' })
  return { kty, ...jwk }
}

function secondsFromNow(seconds: number): number {
  return Math.floor(Date.now() / 1000) + seconds
}

const issuer = tokenIssuer()
const impostor = tokenIssuer()
const expected = { issuer: ADMIN_ISSUER, audience: ADMIN_AUDIENCE }

describe('A JWT as admin token (5.1)', () => {
  const curve = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const byCurve = (input: Buffer) =>
    sign('sha256', input, { key: curve.privateKey, dsaEncoding: 'ieee-p1363' })
  const keys = { keys: [issuer.jwk, { ...jwkOf(curve.publicKey), kid: 'curve' }] }
  const adminJwt = { ...expected, algorithms: ['RS256', 'ES256'], keys }
  const h = suiteHarness({ flows: { adminToken: undefined, trustedProxies: 1, adminJwt } })

  async function expectRefused(token: string, status: number, error: string) {
    const before = await settingsSeen(h, issuer.token())
    const events = h.events.length
    const refused = await put(h, { ...newNetwork(), ...shows(token) })
    expect(refused.headers.get('www-authenticate'))
      .to.match(/^Bearer /)
      .and.include(error)
    const answer = JSON.stringify(await problemOf(refused, status))
    const told = h.events.slice(events)
    expect(told.map(({ type }) => type)).to.deep.equal(['admin_auth_failed'])
    for (const part of token.split('.').filter(({ length }) => length > 20))
      expect(answer + JSON.stringify(told)).not.to.include(part)
    expect(await settingsSeen(h, issuer.token())).to.deep.equal(before)
    await expectWorks(h, issuer.token())
  }

  const { header, token, claims, publicKey, privateKey } = issuer
  const withHeader = (more: Part) => token({}, more)
  const forged = (more: Part = {}) => impostor.token({}, more)
  const { jwk } = impostor
  const evil = 'https://evil.example'
  const rightOnes: Record<string, string> = {
    'by RS256': token(),
    'by another allowed algorithm': compact(
      { ...header, alg: 'ES256', kid: 'curve' },
      claims(),
      byCurve,
    ),
    'for several audiences': token({ aud: ['https://other.example', ADMIN_AUDIENCE] }),
    'with more than the scope': token({ scope: `openid ${ADMIN_SCOPE} profile` }),
    'of the type in full, in any case (RFC 9068, 4)': withHeader({ typ: 'application/AT+JWT' }),
    'without kid, where one key fits': withHeader({ kid: undefined }),
    'issued long ago': token({ iat: 0 }),
    'without iat': token({ iat: undefined }),
    'valid since now': token({ nbf: secondsFromNow(0) }),
    'that names keys of others, at which nobody looks': withHeader({ jwk, jku: evil }),
  }
  for (const [what, token] of Object.entries(rightOnes)) {
    it(`works ${what}`, () => expectWorks(h, token))
  }

  it('is told in the audit log by its subject', async () => {
    await expectWorks(h, token({ sub: 'ann@example.com' }))
    const details = { keys: ['smtp_username'], actor: 'sub:ann@example.com' }
    expect(h.eventsOf('settings_changed').at(-1)?.details).to.deep.equal(details)
  })

  const right = token()
  const [head = '', payload = '', signature = ''] = right.split('.')
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const der = publicKey.export({ type: 'spki', format: 'der' })
  const pss = { key: privateKey, padding: constants.RSA_PKCS1_PSS_PADDING }
  const signedBy = (alg: string, signer: (input: Buffer) => Buffer) =>
    compact({ ...header, alg }, claims(), signer)
  const hs256 = (secret: string | Buffer) =>
    signedBy('HS256', (input) => createHmac('sha256', secret).update(input).digest())
  const encrypted = new CompactEncrypt(Buffer.from(right))
    .setProtectedHeader({ ...header, alg: 'RSA-OAEP-256', enc: 'A256GCM' })
    .encrypt(publicKey)
  const wrong: Record<string, string | Promise<string>> = {
    'with alg none': signedBy('none', () => Buffer.alloc(0)),
    'with alg None': signedBy('None', () => Buffer.alloc(0)),
    'with alg none and a signature': signedBy('none', () => Buffer.from('x')),
    'without alg': withHeader({ alg: undefined }),
    'with several algorithms': withHeader({ alg: ['RS256'] }),
    'by HS256 with the public key as PEM': hs256(pem),
    'by HS256 with the public key as PEM without its end': hs256(pem.trim()),
    'by HS256 with the public key as DER': hs256(der),
    'by HS256 with the public key as JWK': hs256(JSON.stringify(issuer.jwk)),
    'by HS256 with nothing': hs256(''),
    'by RS512, which is not allowed': signedBy('RS512', (text) => sign('sha512', text, privateKey)),
    'by PS256, which is not allowed': signedBy('PS256', (text) => sign('sha256', text, pss)),
    'by an algorithm of another kind of key': withHeader({ alg: 'ES256' }),
    'by another issuer with the same kid': forged(),
    'by another, with its key in jwk': forged({ jwk }),
    'by another, with its key in jwk, and no kid': forged({ jwk, kid: undefined }),
    'by another, with its keys at jku': forged({ jku: evil }),
    'by another, with its certificate at x5u': forged({ x5u: evil }),
    'by another, with its certificate in x5c': forged({ x5c: [der.toString('base64')] }),
    'with an unknown kid': withHeader({ kid: 'key-2' }),
    'with a kid that is a path': withHeader({ kid: '../../../../dev/null' }),
    'with a kid that is SQL': withHeader({ kid: "x' UNION SELECT 'key-1" }),
    'with a kid that is an operator': withHeader({ kid: { $ne: '' } }),
    'of another iss': token({ iss: 'https://issuer.example.evil.example' }),
    'of an iss with one slash more': token({ iss: `${ADMIN_ISSUER}/` }),
    'of several iss': token({ iss: [ADMIN_ISSUER] }),
    'without iss': token({ iss: undefined }),
    'for another aud': token({ aud: 'https://other.example' }),
    'for the begin of the right aud': token({ aud: ADMIN_AUDIENCE.slice(0, -1) }),
    'for no aud of several': token({ aud: ['https://other.example', 'x'] }),
    'for an empty list of aud': token({ aud: [] }),
    'without aud': token({ aud: undefined }),
    'of typ JWT': withHeader({ typ: 'JWT' }),
    'of typ logout+jwt': withHeader({ typ: 'logout+jwt' }),
    'of a typ that is no text': withHeader({ typ: ['at+jwt'] }),
    'without typ': withHeader({ typ: undefined }),
    'without exp': token({ exp: undefined }),
    'after exp': token({ exp: secondsFromNow(-60) }),
    'with exp as a text': token({ exp: String(secondsFromNow(600)) }),
    'with exp as null': token({ exp: null }),
    'before nbf': token({ nbf: secondsFromNow(600) }),
    'with nbf as a text': token({ nbf: '0' }),
    'without sub': token({ sub: undefined }),
    'with an empty sub': token({ sub: '' }),
    'with a sub that is a number': token({ sub: 42 }),
    'with a sub that is an object': token({ sub: { $ne: '' } }),
    'with a sub that is true': token({ sub: true }),
    'with a critical extension': withHeader({ crit: ['exp'], exp: secondsFromNow(600) }),
    'with an empty list of critical extensions': withHeader({ crit: [] }),
    'with an unencoded payload (RFC 7797)': withHeader({ crit: ['b64'], b64: false }),
    'with a changed payload': `${head}.${encoded(claims({ sub: 'mallory' }))}.${signature}`,
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
    'encrypted (RFC 7516)': encrypted,
    'as JSON': JSON.stringify({ payload, signatures: [{ protected: head, signature }] }),
  }
  for (const [what, token] of Object.entries(wrong)) {
    it(`is refused ${what}: 401, and nothing changes (ADM-08)`, async () =>
      expectRefused(await token, 401, 'error="invalid_token"'))
  }

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
    'a scope that begins with one of the three': 'account-flows:reader',
    'one of the three in upper case': 'ACCOUNT-FLOWS:READ',
    'one of the three behind a comma': 'openid,account-flows:read',
    'a star': '*',
    'the right scope in a list': [ADMIN_SCOPE],
    'the right scope as a name': { [ADMIN_SCOPE]: true },
  }
  for (const [what, scope] of Object.entries(narrow)) {
    it(`is refused with ${what}: 403, and nothing changes (ADM-09, ADM-15)`, () =>
      expectRefused(token({ scope }), 403, 'error="insufficient_scope"'))
  }

  it('may do what its scopes allow, and nothing else (ADM-15)', async () => {
    const reader = shows(token({ scope: 'openid account-flows:read' }))
    const before = await settingsSeen(h, token())
    expect((await put(h, reader)).status).to.equal(403)
    expect(await settingsSeen(h, token())).to.deep.equal(before)
    expect((await put(h, reader, GET)).status).to.equal(200)
    await expectWorks(h, token({ scope: 'account-flows:settings' }))
  })
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
    jwks = { keys: [issuer.jwk] }
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
    h = await startWith({ ...expected, keys: address })
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

  async function expectRefused(token: string, status: number, at = h) {
    const changed = at.eventsOf('settings_changed').length
    const refused = await put(at, shows(token), { value: 'mallory' })
    await problemOf(refused, status)
    expect(at.eventsOf('settings_changed')).to.have.length(changed)
    return refused
  }

  it('are fetched once, and not before a token needs them; once fetched they are enough while the address is down', async () => {
    expect(fetched).to.deep.equal([])
    await expectWorks(h, issuer.token())
    await expectWorks(h, issuer.token())
    expect(fetched).to.deep.equal(['/jwks'])
    mode = 'gone'
    await expectWorks(h, issuer.token())
    await expectRefused(impostor.token(), 401)
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
      // Not each of many tokens asks for them.
      for (let count = 1; count < 10; count += 1) await expectRefused(issuer.token(), 503)
      expect(fetched.length).to.be.below(10)
      mode = 'keys'
      await moveTime(60_000)
      await expectWorks(h, issuer.token())
    })
  }

  it('may be several that fit, while a token names none', async () => {
    jwks = { keys: [issuer.jwk, rotated.jwk] }
    await expectWorks(h, rotated.token({}, { kid: undefined }))
    await expectWorks(h, issuer.token({}, { kid: undefined }))
    await expectRefused(impostor.token({}, { kid: undefined }), 401)
    await expectRefused(rotated.token({ exp: 1 }, { kid: undefined }), 401)
  })

  it('are not fetched for what no key could make right, and never from where a token says', async () => {
    const other = [{ alg: 'HS256' }, { alg: 'none' }, { crit: ['x'], x: 1 }]
    const unread = ['no-token', 'x.y.z', ...other.map((header) => issuer.token({}, header))]
    for (const token of unread) await expectRefused(token, 401)
    expect(fetched).to.deep.equal([])
    const evil = new URL('/evil', address).href
    for (const claim of ['jku', 'x5u', 'kid', 'iss'])
      await expectRefused(impostor.token({ iss: evil }, { [claim]: evil }), 401)
    expect(fetched.filter((path) => path !== '/jwks')).to.deep.equal([])
    await expectWorks(h, issuer.token())
  })

  it('are not fetched again and again for unknown kids, and are found once rotated', async () => {
    await expectWorks(h, issuer.token())
    jwks = { keys: [rotated.jwk] }
    for (let kid = 0; kid < 20; kid += 1) {
      await expectRefused(issuer.token({}, { kid: `unknown ${kid}` }), 401)
    }
    expect(fetched).to.have.length(1)
    // The library fetches them again after half a minute at the earliest.
    await moveTime(31_000)
    await expectWorks(h, rotated.token())
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

    const { client_id, client_secret } = CONFIDENTIAL
    const authorization = `Basic ${btoa(`${client_id}:${encodeURIComponent(client_secret)}`)}`
    async function tokenOfClient(asked: { scope?: string }): Promise<string> {
      const form = { grant_type: 'client_credentials', ...asked }
      const url = `${provider.oauthUrl}/token`
      const { text } = await createUserAgent().post(url, form, { authorization })
      return JSON.parse(text).access_token
    }

    const user = await provider.addVerified()
    const { location = '' } = await user.signsIn()
    const tokens = await provider.party.exchange(user.request, location)
    expect(tokens.id_token).to.be.a('string')
    await expectRefused(String(tokens.id_token), 401, admin)
    await expectRefused(tokens.access_token, 401, admin)
    await expectRefused(await tokenOfClient({}), 403, admin)

    await expectWorks(admin, await tokenOfClient({ scope: ADMIN_SCOPE }))
    expect(admin.events.at(-1)?.details).to.include({ actor: `sub:${CONFIDENTIAL.client_id}` })
    await admin.close()
    await provider.close()
  })
})
