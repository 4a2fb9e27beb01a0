import { expect } from 'chai'
import { exportJWK, generateKeyPair } from 'jose'
import type { ClientMetadata } from 'oidc-provider'
import {
  buildAuthorizationUrlWithJAR,
  buildAuthorizationUrlWithPAR,
  randomPKCECodeVerifier,
} from 'openid-client'
import {
  accountOf,
  blockedLogin,
  eventsOf,
  expectExpired,
  expectNothingChanged,
  expectResumed,
  expectStillWorks,
  sessionId,
  setsSession,
  silently,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { CLIENT, CONFIDENTIAL, startHarness, type Harness } from '../support/harness.ts'
import { createRelyingParty, type AuthorizationRequest } from '../support/relying-party.ts'
import { createUserAgent } from '../support/user-agent.ts'

const PAR_ONLY = {
  ...CLIENT,
  client_id: 'par-only',
  redirect_uris: ['https://par.example/cb'],
  require_pushed_authorization_requests: true,
} as const satisfies ClientMetadata
const JAR_ONLY = {
  ...CLIENT,
  client_id: 'jar-only',
  redirect_uris: ['https://jar.example/cb'],
  require_signed_request_object: true,
  request_object_signing_alg: 'ES256',
} as const satisfies ClientMetadata

const parametersOf = ({ url }: AuthorizationRequest) => Object.fromEntries(url.searchParams)

onBothStores('GET {oauth_path}/verify-email (4.6)', (technology) => {
  let harness: Harness
  let jarKey: CryptoKey

  before(async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256')
    const jwks = { keys: [await exportJWK(publicKey)] }
    jarKey = privateKey
    harness = await startHarness({
      technology,
      clients: [CLIENT, CONFIDENTIAL, PAR_ONLY, { ...JAR_ONLY, jwks }],
      provider: {
        features: {
          devInteractions: { enabled: false },
          pushedAuthorizationRequests: { enabled: true },
          requestObjects: { enabled: true },
        },
      },
    })
  })
  after(() => harness.close())

  const partyOf = (client: typeof PAR_ONLY | typeof JAR_ONLY) =>
    createRelyingParty(harness.oauthUrl, {
      clientId: client.client_id,
      redirectUri: client.redirect_uris[0],
    })

  it('marks the address verified and redirects once, with 302, to the client with code, state and iss', async () => {
    const login = await blockedLogin(harness)
    const answer = await login.agent.get(login.link)
    expect(setsSession(answer)).to.equal(true)
    await expectResumed(harness, login, answer)
    const [event] = await eventsOf(harness, {
      type: 'email_verification_completed',
      accountId: login.user.id,
    })
    expect(event?.clientId).to.equal(CLIENT.client_id)
  })

  it('does the same in another browser', async () => {
    const login = await blockedLogin(harness)
    const other = createUserAgent()
    await expectResumed(harness, login, await other.get(login.link))
    expect(await accountOf(harness, other)).to.equal(login.user.id)
    expect(sessionId(harness, login.agent)).to.equal(undefined)
  })

  it('does the same after the interaction is gone, in either browser (VER-16)', async () => {
    for (const browser of ['same', 'other']) {
      const login = await blockedLogin(harness)
      const interaction = await harness.provider.Interaction.find(login.interaction)
      await interaction?.destroy()
      const agent = browser === 'same' ? login.agent : createUserAgent()
      await expectResumed(harness, login, await agent.get(login.link))
    }
  })

  it('resumes a pushed authorization request, also after its record and the interaction are gone', async () => {
    for (const isGone of [false, true]) {
      const party = await partyOf(PAR_ONLY)
      let requestUri = ''
      const login = await blockedLogin(harness, {
        party,
        async send(request) {
          const url = await buildAuthorizationUrlWithPAR(party.config, parametersOf(request))
          requestUri = url.searchParams.get('request_uri') ?? ''
          return url
        },
      })
      if (isGone) {
        const jti = requestUri.split(':').at(-1) ?? ''
        const pushed = await harness.provider.PushedAuthorizationRequest.find(jti)
        const interaction = await harness.provider.Interaction.find(login.interaction)
        expect([pushed, interaction]).to.not.include(undefined)
        await pushed?.destroy()
        await interaction?.destroy()
      }
      await expectResumed(harness, login, await createUserAgent().get(login.link))
    }
  })

  it('resumes a request of a client that must sign its requests', async () => {
    const party = await partyOf(JAR_ONLY)
    const login = await blockedLogin(harness, {
      party,
      send: (request) => buildAuthorizationUrlWithJAR(party.config, parametersOf(request), jarKey),
    })
    const interaction = await harness.provider.Interaction.find(login.interaction)
    await interaction?.destroy()
    await expectResumed(harness, login, await createUserAgent().get(login.link))
  })

  it('keeps the nonce, and PKCE: another verifier redeems nothing (RED-06, RED-07)', async () => {
    const login = await blockedLogin(harness)
    const { location = '' } = await login.agent.get(login.link)
    const stolen = { ...login.request, codeVerifier: randomPKCECodeVerifier() }
    const refused = await login.party.exchange(stolen, location).catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(Error).with.property('error', 'invalid_grant')

    const again = await blockedLogin(harness)
    const tokens = await expectResumed(harness, again, await again.agent.get(again.link))
    expect(tokens.claims()?.['nonce']).to.equal(again.request.nonce)
  })

  it('creates an IdP session: the next sign-in is silent', async () => {
    const login = await blockedLogin(harness)
    expect((await silently(harness, login.agent)).get('error')).to.equal('login_required')
    await expectStillWorks(harness, login)
    expect(await accountOf(harness, login.agent)).to.equal(login.user.id)
  })

  it('cannot be used again: the page in mode expired, no session and no code', async () => {
    const login = await blockedLogin(harness)
    await expectStillWorks(harness, login)
    const session = sessionId(harness, login.agent)
    const thief = createUserAgent()
    for (const agent of [thief, login.agent, thief]) expectExpired(await agent.get(login.link))
    expect(sessionId(harness, thief)).to.equal(undefined)
    expect(sessionId(harness, login.agent)).to.equal(session)
  })

  it('gives one of 20 parallel requests the redirect, and the others nothing (RACE-05)', async () => {
    const login = await blockedLogin(harness)
    const agents = Array.from({ length: 20 }, () => createUserAgent())
    const answers = await Promise.all(agents.map((agent) => agent.get(login.link)))
    const redirects = answers.filter(({ status }) => status === 302)
    expect(redirects).to.have.length(1)
    expect(answers.filter(setsSession)).to.deep.equal(redirects)
    for (const { status, mode, location } of answers) {
      if (status === 302) continue
      expect(`${status} ${mode}`).to.be.oneOf(['400 expired', '200 verified'])
      expect(location).to.equal(undefined)
    }
    for (const answer of redirects) await expectResumed(harness, login, answer)
  })

  it('does nothing on HEAD', async () => {
    const login = await blockedLogin(harness)
    for (const _time of [1, 2, 3]) {
      const answer = await login.agent.request('HEAD', login.link)
      expect(answer.status).to.be.within(200, 499)
      await expectNothingChanged(harness, login, answer)
    }
    await expectStillWorks(harness, login)
  })

  it('does nothing for a prefetch, and nothing where no page is wanted', async () => {
    const login = await blockedLogin(harness)
    for (const [name, value] of [
      ['sec-purpose', 'prefetch'],
      ['sec-purpose', 'prefetch;prerender'],
      ['purpose', 'prefetch'],
      ['x-moz', 'prefetch'],
      ['sec-fetch-dest', 'image'],
      ['sec-fetch-dest', 'script'],
      ['sec-fetch-dest', 'iframe'],
      ['sec-fetch-dest', 'empty'],
    ] as const) {
      const answer = await login.agent.get(login.link, { [name]: value })
      expect(answer.status, value).to.be.within(200, 499)
      await expectNothingChanged(harness, login, answer)
    }
    const honest = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'cors' }
    await expectResumed(harness, login, await login.agent.get(login.link, honest))
  })

  it('does nothing for any other method', async () => {
    const login = await blockedLogin(harness)
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const answer = await login.agent.request(method, login.link)
      expect(answer.status, method).to.equal(405)
      expect(answer.headers.get('allow')).to.equal('GET, HEAD, POST')
      await expectNothingChanged(harness, login, answer)
    }
    await expectStillWorks(harness, login)
  })

  it('leaves the link in no cache, and tells no other site about it', async () => {
    const login = await blockedLogin(harness)
    const redirect = await login.agent.get(login.link)
    const page = await login.agent.get(login.link)
    expect(redirect.headers.get('cache-control')).to.include('no-store')
    expect(page.headers.get('cache-control')).to.equal('no-store')
    expect(page.headers.get('referrer-policy')).to.equal('no-referrer')
  })
})
