import { expect } from 'chai'
import { randomPKCECodeVerifier } from 'openid-client'
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
import {
  JAR_ONLY,
  PAR_ONLY,
  THEIR_FEATURES,
  forgetInteraction,
  pushedLogin,
  signedLogin,
} from '../support/clients.ts'
import { CLIENT, CONFIDENTIAL } from '../support/harness.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent } from '../support/user-agent.ts'

describe('GET {oauth_path}/verify-email (4.6)', () => {
  const h = suiteHarness({
    clients: [CLIENT, CONFIDENTIAL, PAR_ONLY, JAR_ONLY],
    provider: { features: THEIR_FEATURES },
  })

  it('marks the address verified and redirects once, with 302, to the client with code, state and iss', async () => {
    const login = await blockedLogin(h)
    const answer = await login.agent.get(login.link)
    expect(setsSession(answer)).to.equal(true)
    await expectResumed(h, login, answer)
    const [event] = await eventsOf(h, {
      type: 'email_verification_completed',
      accountId: login.user.id,
    })
    expect(event?.clientId).to.equal(CLIENT.client_id)
  })

  it('does the same in another browser, and after the interaction is gone, in either (VER-16)', async () => {
    for (const [isSame, isGone] of [
      [false, false],
      [true, true],
      [false, true],
    ]) {
      const login = await blockedLogin(h)
      if (isGone) await forgetInteraction(h, login)
      const agent = isSame ? login.agent : createUserAgent()
      await expectResumed(h, login, await agent.get(login.link))
      expect(await accountOf(h, agent)).to.equal(login.user.id)
      expect(sessionId(h, login.agent) !== undefined).to.equal(isSame)
    }
  })

  it('resumes a pushed authorization request, also after its record and the interaction are gone', async () => {
    for (const isGone of [false, true]) {
      const { login, url } = await pushedLogin(h)
      if (isGone) {
        const jti = url.searchParams.get('request_uri')?.split(':').at(-1) ?? ''
        const pushed = await h.provider.PushedAuthorizationRequest.find(jti)
        expect(pushed).to.not.equal(undefined)
        await pushed?.destroy()
        await forgetInteraction(h, login)
      }
      await expectResumed(h, login, await createUserAgent().get(login.link))
    }
  })

  it('resumes a request of a client that must sign its requests', async () => {
    const login = await signedLogin(h)
    await forgetInteraction(h, login)
    await expectResumed(h, login, await createUserAgent().get(login.link))
  })

  it('keeps the nonce, and PKCE: another verifier redeems nothing (RED-06, RED-07)', async () => {
    const login = await blockedLogin(h)
    const { location = '' } = await login.agent.get(login.link)
    const stolen = { ...login.request, codeVerifier: randomPKCECodeVerifier() }
    const refused = await login.party.exchange(stolen, location).catch((error: unknown) => error)
    expect(refused).to.be.instanceOf(Error).with.property('error', 'invalid_grant')

    const again = await blockedLogin(h)
    const tokens = await expectResumed(h, again, await again.agent.get(again.link))
    expect(tokens.claims()?.['nonce']).to.equal(again.request.nonce)
  })

  it('creates an IdP session: the next sign-in is silent', async () => {
    const login = await blockedLogin(h)
    expect((await silently(h, login.agent)).get('error')).to.equal('login_required')
    await expectStillWorks(h, login)
    expect(await accountOf(h, login.agent)).to.equal(login.user.id)
  })

  it('cannot be used again: the page in mode expired, no session and no code', async () => {
    const login = await blockedLogin(h)
    await expectStillWorks(h, login)
    const session = sessionId(h, login.agent)
    const thief = createUserAgent()
    for (const agent of [thief, login.agent, thief]) expectExpired(await agent.get(login.link))
    expect(sessionId(h, thief)).to.equal(undefined)
    expect(sessionId(h, login.agent)).to.equal(session)
  })

  it('does nothing on HEAD', async () => {
    const login = await blockedLogin(h)
    for (const _time of [1, 2, 3]) {
      const answer = await login.agent.request('HEAD', login.link)
      expect(answer.status).to.be.within(200, 499)
      await expectNothingChanged(h, login, answer)
    }
    await expectStillWorks(h, login)
  })

  it('does nothing for a prefetch, and nothing where no page is wanted', async () => {
    const login = await blockedLogin(h)
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
      await expectNothingChanged(h, login, answer)
    }
    const honest = { 'sec-fetch-dest': 'document', 'sec-fetch-mode': 'cors' }
    await expectResumed(h, login, await login.agent.get(login.link, honest))
  })

  it('does nothing for any other method', async () => {
    const login = await blockedLogin(h)
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const answer = await login.agent.request(method, login.link)
      expect(answer.status, method).to.equal(405)
      expect(answer.headers.get('allow')).to.equal('GET, HEAD, POST')
      await expectNothingChanged(h, login, answer)
    }
    await expectStillWorks(h, login)
  })

  it('leaves the link in no cache, and tells no other site about it', async () => {
    const login = await blockedLogin(h)
    const redirect = await login.agent.get(login.link)
    const page = await login.agent.get(login.link)
    expect(redirect.headers.get('cache-control')).to.include('no-store')
    expect(page.headers.get('cache-control')).to.equal('no-store')
    expect(page.headers.get('referrer-policy')).to.equal('no-referrer')
  })
})

onBothStores('GET {oauth_path}/verify-email, many times at once (4.6)', (technology) => {
  const h = suiteHarness({ technology })

  it('gives one of 20 parallel requests the redirect, and the others nothing (RACE-05)', async () => {
    const login = await blockedLogin(h)
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
    for (const answer of redirects) await expectResumed(h, login, answer)
  })
})
