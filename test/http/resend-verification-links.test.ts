import { expect } from 'chai'
import { authorizationCodeGrant } from 'openid-client'
import {
  accountOf,
  addUnverified,
  blockedLogin,
  expectExpired,
  expectOnlyVerified,
  expectResumed,
  expectStillWorks,
  isVerified,
  resend,
  sessionId,
} from '../support/blocked-login.ts'
import { CLIENT, CONFIDENTIAL } from '../support/harness.ts'
import { createRelyingParty } from '../support/relying-party.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import { createUserAgent, type Answer } from '../support/user-agent.ts'

const [APP_URI] = CLIENT.redirect_uris
const [SERVER_URI] = CONFIDENTIAL.redirect_uris
const APP: Record<string, string> = {
  client_id: CLIENT.client_id,
  redirect_uri: APP_URI,
  scope: 'openid',
}
const SERVER = { client_id: CONFIDENTIAL.client_id, redirect_uri: SERVER_URI, scope: 'openid' }
const CARRIED = new Set(['client_id', 'redirect_uri', 'scope', 'state'])

const carriedIn = (link: string) =>
  Object.fromEntries([...new URL(link).searchParams].filter(([name]) => CARRIED.has(name)))

describe('A link of POST {oauth_path}/resend-verification (4.7)', () => {
  const harness = suiteHarness()

  describe('while a login waits', () => {
    it('finishes the one of the same client, redirect URI and state', async () => {
      const user = await addUnverified(harness)
      const first = await blockedLogin(harness, { user })
      const second = await blockedLogin(harness, { user })
      const link = await resend(harness, user, { ...APP, state: first.request.state })
      const answer = await createUserAgent().get(link)
      await expectResumed(harness, { ...first, link }, answer)
      expectExpired(await createUserAgent().get(second.link))
    })

    it('finishes the newest of several that are alike', async () => {
      const user = await addUnverified(harness)
      const extra = { state: 'always the same' }
      await blockedLogin(harness, { user, extra })
      const newest = await blockedLogin(harness, { user, extra })
      const link = await resend(harness, user, { ...APP, ...extra })
      await expectResumed(harness, { ...newest, link }, await newest.agent.get(link))
    })

    it('finishes none of another state, absent and empty being two', async () => {
      for (const carried of [
        (state: string) => ({ ...APP, state: `${state}x` }),
        () => ({ ...APP, state: '' }),
        () => APP,
      ]) {
        const login = await blockedLogin(harness)
        const link = await resend(harness, login.user, carried(login.request.state))
        expectNoCode(await login.agent.get(link))
      }
    })

    it('finishes none of another user', async () => {
      const login = await blockedLogin(harness)
      const stranger = await addUnverified(harness)
      const link = await resend(harness, stranger, { ...APP, state: login.request.state })
      expectNoCode(await createUserAgent().get(link))
      expect(await isVerified(harness, login.user)).to.equal(false)
      await expectStillWorks(harness, login)
    })

    function expectNoCode({ status, location = '' }: Answer) {
      expect(status).to.equal(302)
      const { searchParams } = new URL(location)
      expect(searchParams.has('code')).to.equal(false)
      expect(searchParams.get('error')).to.equal('invalid_request')
    }
  })

  describe('while no login waits', () => {
    it('ends in an OAuth error at the redirect URI of a client that needs PKCE, and signs in (RED-06)', async () => {
      const user = await addUnverified(harness)
      const agent = createUserAgent()
      const answer = await agent.get(await resend(harness, user, { ...APP, state: 'a b&c' }))
      expect(answer.status).to.equal(302)
      const location = new URL(answer.location ?? '')
      expect(location.origin + location.pathname).to.equal(APP_URI)
      const { error, error_description, state, iss, ...others } = Object.fromEntries(
        location.searchParams,
      )
      expect([error, state, iss]).to.deep.equal(['invalid_request', 'a b&c', harness.oauthUrl])
      expect(error_description).to.match(/PKCE/)
      expect(others).to.deep.equal({})
      expect(await isVerified(harness, user)).to.equal(true)
      expect(await accountOf(harness, agent)).to.equal(user.id)
    })

    it('gives a client that needs no PKCE its code', async () => {
      const user = await addUnverified(harness)
      const agent = createUserAgent()
      const link = await resend(harness, user, { ...SERVER, state: 'its state' })
      const answer = await agent.get(link)
      expect(answer.status).to.equal(302)
      const party = await createRelyingParty(harness.oauthUrl, {
        clientId: CONFIDENTIAL.client_id,
        redirectUri: SERVER_URI,
        clientSecret: CONFIDENTIAL.client_secret,
      })
      const { searchParams } = new URL(answer.location ?? '')
      expect(Object.fromEntries(searchParams)).to.include({
        state: 'its state',
        iss: harness.oauthUrl,
      })
      const tokens = await authorizationCodeGrant(party.config, new URL(answer.location ?? ''), {
        expectedState: 'its state',
      })
      expect(tokens.claims()?.sub).to.equal(user.id)
      const session = await harness.provider.Session.find(sessionId(harness, agent) ?? '')
      expect(session?.amr).to.deep.equal(['email'])
      expect((session?.exp ?? 0) - Date.now() / 1000).to.be.greaterThan(3600)
      expect(await accountOf(harness, agent)).to.equal(user.id)
      expectExpired(await agent.get(link))
    })

    it('only verifies without client parameters: no session and no code', async () => {
      for (const carried of [{}, { state: 'x', scope: 'openid' }, { client_id: 'app' }]) {
        const user = await addUnverified(harness)
        const agent = createUserAgent()
        const link = await resend(harness, user, carried)
        expect(carriedIn(link)).to.deep.equal({})
        await expectOnlyVerified(harness, { user, agent }, await agent.get(link))
      }
    })

    it('never asks for a scope that the client may not have (RED-11)', async () => {
      const user = await addUnverified(harness)
      const scope = 'openid email admin'
      const answer = await createUserAgent().get(await resend(harness, user, { ...SERVER, scope }))
      const code = new URL(answer.location ?? '').searchParams.get('code')
      const record = code ? await harness.provider.AuthorizationCode.find(code) : undefined
      expect(record?.scope ?? '').to.not.include('admin')
    })
  })

  describe('with a redirect URI that is not the client’s', () => {
    const near = [
      'https://evil.example/cb',
      'https://app.example/cb/',
      'https://app.example/cb?x=y',
      'https://APP.example/cb',
      'https://app.example@evil.example/cb',
      '//app.example/cb',
      'javascript:alert(1)',
      SERVER_URI,
      '',
    ]

    it('is neither signed nor mailed, and the link only verifies (SIG-16)', async () => {
      const strangers = ['nobody', '', 'APP', 'app ']
      await Promise.all([
        ...near.map((redirect_uri) => expectOnlyVerifies({ redirect_uri, state: 'x' })),
        ...strangers.map((client_id) => expectOnlyVerifies({ client_id })),
      ])
    })

    async function expectOnlyVerifies(evil: Record<string, string>) {
      const carried = { ...APP, ...evil }
      const user = await addUnverified(harness)
      const link = await resend(harness, user, carried)
      expect(carriedIn(link), JSON.stringify(carried)).to.deep.equal({})
      const { mail } = await harness.mail.mailTo(user.email ?? '')
      const body = `${mail.text}${String(mail.html)}`
      expect(/.{0,40}(evil\.|app\.example|javascript:).{0,40}/i.exec(body)?.[0]).to.equal(undefined)
      const agent = createUserAgent()
      await expectOnlyVerified(harness, { user, agent }, await agent.get(link))
    }
  })
})
