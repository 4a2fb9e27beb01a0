import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'chai'
import { exportJWK, generateKeyPair } from 'jose'
import type { Adapter, ClientMetadata } from 'oidc-provider'
import { buildAuthorizationUrlWithJAR, buildAuthorizationUrlWithPAR } from 'openid-client'
import {
  addUnverified,
  blockedLogin,
  expectResumed,
  isVerified,
  mailsTo,
  sessionId,
  setsSession,
  type BlockedLogin,
} from '../support/blocked-login.ts'
import { onBothStores } from '../support/both-stores.ts'
import { CLIENT, CONFIDENTIAL, PASSWORD, startHarness, type Harness } from '../support/harness.ts'
import {
  beginDevice,
  confirmDevice,
  DEVICE_CLIENT,
  outcomeOf,
  pollDevice,
} from '../support/oauth-requests.ts'
import { createRelyingParty, type AuthorizationRequest } from '../support/relying-party.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { words } from '../support/words.ts'
import { expectMode, openElsewhere, windowNamed, windowOf } from '../support/waiting-window.ts'

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
const NATIVE = {
  ...CLIENT,
  client_id: 'native',
  application_type: 'native',
  redirect_uris: ['com.example.app:/cb'],
} as const satisfies ClientMetadata
const DYNAMIC_URI = 'https://dynamic.example/cb'

const parametersOf = ({ url }: AuthorizationRequest) => Object.fromEntries(url.searchParams)

onBothStores(
  'The waiting window finishes the very request of its client (D11, D15)',
  (technology) => {
    let harness: Harness
    let jarKey: CryptoKey
    let registered = 0

    before(async () => {
      const { privateKey, publicKey } = await generateKeyPair('ES256')
      const jwks = { keys: [await exportJWK(publicKey)] }
      jarKey = privateKey
      harness = await startHarness({
        technology,
        clients: [CLIENT, CONFIDENTIAL, PAR_ONLY, { ...JAR_ONLY, jwks }, NATIVE, DEVICE_CLIENT],
        provider: {
          features: {
            devInteractions: { enabled: false },
            pushedAuthorizationRequests: { enabled: true },
            requestObjects: { enabled: true },
            deviceFlow: { enabled: true },
          },
        },
      })
    })
    after(() => harness.close())

    const partyOf = (client: typeof PAR_ONLY | typeof JAR_ONLY | typeof NATIVE) =>
      createRelyingParty(harness.oauthUrl, {
        clientId: client.client_id,
        redirectUri: client.redirect_uris[0],
      })

    async function pushedLogin() {
      const party = await partyOf(PAR_ONLY)
      let url = new URL(harness.oauthUrl)
      const login = await blockedLogin(harness, {
        party,
        async send(request) {
          url = await buildAuthorizationUrlWithPAR(party.config, parametersOf(request))
          return url
        },
      })
      return { login, url }
    }

    /** A client in the adapter, as dynamic registration leaves it. */
    async function register() {
      registered += 1
      const clientId = `dynamic-${registered}`
      const metadata: ClientMetadata = {
        ...CLIENT,
        client_id: clientId,
        redirect_uris: [DYNAMIC_URI],
      }
      const { adapter } = harness.provider.Client as unknown as { adapter: Adapter }
      const change = (changes: ClientMetadata) =>
        adapter.upsert(clientId, { ...metadata, ...changes }, 3600)
      await change({ client_id: clientId })
      const party = await createRelyingParty(harness.oauthUrl, {
        clientId,
        redirectUri: DYNAMIC_URI,
      })
      return { clientId, party, change, remove: () => adapter.destroy(clientId) }
    }

    it('after the interaction is gone', async () => {
      const login = await blockedLogin(harness)
      await (await harness.provider.Interaction.find(login.interaction))?.destroy()
      await openElsewhere(login)
      await expectResumed(harness, login, await windowOf(harness, login).goOn())
    })

    it('though the other browser used a pushed request up', async () => {
      const { login, url } = await pushedLogin()
      const elsewhere = await openElsewhere(login)
      expect(elsewhere.location).to.match(/[?&]code=/)
      await expectResumed(harness, login, await windowOf(harness, login).goOn())
      expect(outcomeOf(await createUserAgent().get(url))).to.equal('invalid_request_uri')
    })

    it('and uses a pushed request up where nobody else did', async () => {
      await harness.put({ email_link_confirmation: 'always' })
      const { login, url } = await pushedLogin()
      const elsewhere = createUserAgent()
      const { hidden } = await elsewhere.get(login.link)
      await elsewhere.post(`${harness.oauthUrl}/verify-email`, { ...hidden, action: 'confirm' })
      await harness.put({ email_link_confirmation: 'off' })
      await expectResumed(harness, login, await windowOf(harness, login).goOn())
      expect(outcomeOf(await createUserAgent().get(url))).to.equal('invalid_request_uri')
    })

    it('of a client that must sign its requests', async () => {
      const party = await partyOf(JAR_ONLY)
      const login = await blockedLogin(harness, {
        party,
        send: (request) =>
          buildAuthorizationUrlWithJAR(party.config, parametersOf(request), jarKey),
      })
      await openElsewhere(login)
      await expectResumed(harness, login, await windowOf(harness, login).goOn())
    })

    it('with prompt=login, without a second question', async () => {
      const login = await blockedLogin(harness, { extra: { prompt: 'login' } })
      await openElsewhere(login)
      await expectResumed(harness, login, await windowOf(harness, login).goOn())
    })

    it('with the link opened in a browser that has never heard of the parameters of a long request', async () => {
      const state = 's'.repeat(4_001)
      const login = await blockedLogin(harness, { extra: { state } })
      expect(login.link).to.not.include('state=')
      await openElsewhere(login)
      await expectResumed(harness, login, await windowOf(harness, login).goOn())
    })

    async function expectConsentThenCode(login: BlockedLogin, answer: Answer) {
      expect(answer.status).to.equal(302)
      expect(answer.location).to.match(/\/login\?interaction=/)
      const page = await harness.follow(login.agent, answer)
      expect([page.page, page.mode]).to.deep.equal(['login', 'consent'])
      const given = await login.agent.post(page.url, { consent: 'yes' })
      const { location = '' } = await harness.follow(login.agent, given)
      expect(location.split('?')[0]).to.equal(login.request.redirectUri)
      const tokens = await login.party.exchange(login.request, location)
      expect(tokens.claims()?.sub).to.equal(login.user.id)
    }

    it('by way of the consent page where consent is due, and for a native client', async () => {
      const asked = await blockedLogin(harness, { extra: { prompt: 'consent' } })
      const native = await blockedLogin(harness, { party: await partyOf(NATIVE) })
      for (const login of [asked, native]) {
        await openElsewhere(login)
        await expectConsentThenCode(login, await windowOf(harness, login).goOn())
      }
    })

    it('by way of the login page once max_age has passed since the password was checked', async () => {
      const login = await blockedLogin(harness, { extra: { max_age: '1' } })
      await openElsewhere(login)
      await sleep(2_100)
      const answer = await windowOf(harness, login).goOn()
      expect(setsSession(answer)).to.equal(false)
      const page = await harness.follow(login.agent, answer)
      expect([page.page, page.mode]).to.deep.equal(['login', 'login'])
      const form = { username: login.user.username, password: PASSWORD }
      const back = await harness.follow(login.agent, await login.agent.post(page.url, form))
      const tokens = await login.party.exchange(login.request, back.location ?? '')
      expect(tokens.claims()?.sub).to.equal(login.user.id)
    })

    describe('unless the client changed meanwhile:', () => {
      async function expectNoRedirect(login: BlockedLogin) {
        const window = windowOf(harness, login)
        expectMode(await openElsewhere(login), 200, 'verified')
        const answer = await window.goOn()
        expectMode(answer, 200, 'verified')
        expect(sessionId(harness, login.agent)).to.equal(undefined)
        expect(await window.status()).to.equal('verified')
      }

      it('its redirect URI was withdrawn, until it is back', async () => {
        const { clientId, party, change } = await register()
        const login = await blockedLogin(harness, { party })
        await change({ client_id: clientId, redirect_uris: [`${DYNAMIC_URI}/`] })
        await expectNoRedirect(login)
        await change({ client_id: clientId })
        await expectResumed(harness, login, await windowOf(harness, login).goOn())
      })

      it('it may no longer ask for a code, or is gone, and another client’s login works', async () => {
        const { clientId, party, change, remove } = await register()
        const login = await blockedLogin(harness, { party })
        const machine = { grant_types: ['client_credentials'], response_types: [] }
        const secret = {
          client_secret: 'a secret',
          token_endpoint_auth_method: 'client_secret_basic',
        }
        await change({ client_id: clientId, ...machine, ...secret } as ClientMetadata)
        await expectNoRedirect(login)
        await remove()
        expectMode(await windowOf(harness, login).goOn(), 200, 'verified')
        const answer = await harness.signIn(login.agent, login.user.username)
        expect(answer.location).to.match(/[?&]code=/)
      })

      it('and no window is promised to go on elsewhere then, when the link is opened in another browser', async () => {
        const { party, remove } = await register()
        const [gone, kept] = [await blockedLogin(harness, { party }), await blockedLogin(harness)]
        await remove()
        await harness.put({ email_link_confirmation: 'always' })
        const texts: string[] = []
        for (const login of [gone, kept]) {
          const agent = createUserAgent()
          const { hidden } = await agent.get(login.link)
          const form = { ...hidden, action: 'confirm' }
          const answer = await agent.post(`${harness.oauthUrl}/verify-email`, form)
          expectMode(answer, 200, 'verified')
          texts.push(answer.text)
        }
        await harness.put({ email_link_confirmation: 'off' })
        const promise = words['verify-email.verified.elsewhere'] ?? 'not there'
        expect(texts.map((text) => text.includes(promise))).to.deep.equal([false, true])
        await expectResumed(harness, kept, await windowOf(harness, kept).goOn())
      })
    })

    describe('of a device:', () => {
      async function blockedDevice(agent: UserAgent) {
        const user = await addUnverified(harness)
        const before = mailsTo(harness, user)
        const device = await beginDevice(harness)
        const page = await confirmDevice(harness, agent, device)
        expect([page.page, page.mode]).to.deep.equal(['login', 'login'])
        const blocked = await agent.post(page.url, { username: user.username, password: PASSWORD })
        expectMode(blocked, 200, 'blocked')
        const { link } = await harness.mail.mailTo(user.email ?? '', before + 1)
        return { user, device, link, window: windowNamed(harness.oauthUrl, idOf(blocked), agent) }
      }
      const idOf = ({ hidden }: Answer) => hidden['login'] ?? ''

      it('waits, and gives the device its tokens once the address is verified elsewhere', async () => {
        await harness.put({ email_link_confirmation: 'other_browser' })
        const agent = createUserAgent()
        const { user, device, link, window } = await blockedDevice(agent)
        expect(await pollDevice(harness, device)).to.equal('authorization_pending')
        const elsewhere = createUserAgent()
        const { hidden } = await elsewhere.get(link)
        const form = { ...hidden, action: 'confirm' }
        expectMode(await elsewhere.post(`${harness.oauthUrl}/verify-email`, form), 200, 'verified')
        await harness.put({ email_link_confirmation: 'off' })
        expect(await pollDevice(harness, device)).to.equal('authorization_pending')
        expect(await window.status()).to.equal('verified')
        const done = await harness.follow(agent, await window.goOn())
        expect(done.status).to.equal(200)
        expect(await isVerified(harness, user)).to.equal(true)
        expect(await pollDevice(harness, device)).to.equal('tokens')
      })

      it('is no dead end where the link has finished it in the other browser', async () => {
        const agent = createUserAgent()
        const { device, link, window } = await blockedDevice(agent)
        const elsewhere = createUserAgent()
        await harness.follow(elsewhere, await elsewhere.get(link))
        const answer = await harness.follow(agent, await window.goOn())
        expect(answer.status).to.be.below(500)
        expect(await pollDevice(harness, device)).to.equal('tokens')
      })

      it('is no dead end once the code of the device is gone', async () => {
        const agent = createUserAgent()
        const { device, link, window } = await blockedDevice(agent)
        await (await harness.provider.DeviceCode.find(device.device_code))?.destroy()
        const elsewhere = await createUserAgent().get(link)
        const answer = await harness.follow(agent, await window.goOn())
        expect([elsewhere.status, answer.status].every((status) => status < 500)).to.equal(true)
        expect(await pollDevice(harness, device)).to.equal('invalid_grant')
      })
    })
  },
)
