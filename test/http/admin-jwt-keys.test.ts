import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect } from 'chai'
import type { JSONWebKeySet } from 'jose'
import { ADMIN_AUDIENCE, ADMIN_ISSUER, ADMIN_SCOPE, tokenIssuer } from '../support/admin-tokens.ts'
import { CLIENT, CONFIDENTIAL, startHarness, type Harness } from '../support/harness.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent } from '../support/user-agent.ts'

const issuer = tokenIssuer('key-1')
const rotated = tokenIssuer('key-2')
const impostor = tokenIssuer('key-1')

/** Answers the issuer's keys, or fails in one of the ways there are. */
type Mode = 'keys' | 'gone' | 'failing' | 'garbage' | 'no set' | 'elsewhere'

describe('The keys of a JWT as admin token, at an address (D28)', () => {
  let server: Server
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
    server = createServer((req, res) => {
      fetched.push(req.url ?? '')
      const isMoved = mode === 'elsewhere' && req.url === '/jwks'
      if (mode === 'gone') req.socket.destroy()
      else if (mode === 'failing') res.writeHead(500).end(JSON.stringify(jwks))
      else if (mode === 'garbage') res.end('<p>no keys</p>')
      else if (mode === 'no set') res.end('{"keys":"none"}')
      else if (isMoved) res.writeHead(302, { location: '/moved' }).end()
      else res.end(JSON.stringify(jwks))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    address = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks`)
    h = await startWith({ issuer: ADMIN_ISSUER, audience: ADMIN_AUDIENCE, keys: address })
  })

  afterEach(async () => {
    await h.close()
    server.closeAllConnections()
    server.close()
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

  const put = (token: string, settings: Record<string, string>, { baseUrl } = h) =>
    fetch(`${baseUrl}/admin/api/settings`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(settings),
    })

  async function expectWorks(token: string) {
    expect((await put(token, { smtp_username: 'ann' })).status).to.equal(200)
    expect((await h.store.settings.read()).values).to.include({ smtp_username: 'ann' })
  }

  async function expectRefused(token: string, status: number, at = h) {
    const before = await at.store.settings.read()
    const response = await put(token, { smtp_username: 'mallory' }, at)
    expect(response.status).to.equal(status)
    expect(response.headers.get('content-type')).to.match(/^application\/problem\+json/)
    expect(await response.json()).to.include({ status })
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
    expect((await put(rotated.token(), { smtp_username: 'bob' })).status).to.equal(200)
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
    const answer = await provider.follow(
      agent,
      await provider.login(agent, request.url, user.username),
    )
    const tokens = await provider.party.exchange(request, answer.location ?? '')
    expect(tokens.id_token).to.be.a('string')
    await expectRefused(String(tokens.id_token), 401, admin)
    await expectRefused(tokens.access_token, 401, admin)
    await expectRefused(await tokenOfClient({}), 403, admin)

    const token = await tokenOfClient({ scope: ADMIN_SCOPE })
    expect((await put(token, { smtp_username: 'client' }, admin)).status).to.equal(200)
    expect(admin.events.at(-1)?.details).to.include({ actor: `sub:${CONFIDENTIAL.client_id}` })
    await admin.close()
    await provider.close()
  })
})
