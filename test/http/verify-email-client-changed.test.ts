import { expect } from 'chai'
import Koa from 'koa'
import mount from 'koa-mount'
import type { ClientMetadata } from 'oidc-provider'
import {
  bySigning,
  JAR_ONLY,
  signedLogin,
  bySigningAndPushing,
  byPushing,
  dynamicLogin,
  expectConsentThenCode,
  THEIR_FEATURES,
  DYNAMIC_URI,
  MACHINE,
  type DynamicClient,
  type Sending,
} from '../support/clients.ts'
import { AccountFlowsError } from '../../src/index.ts'
import { CLIENT, type Harness, type Host } from '../support/harness.ts'
import { OFFLINE } from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/suite-harness.ts'
import type { Answer } from '../support/user-agent.ts'
import { expectMode, pendingOf, windowOf } from '../support/waiting-window.ts'
import { blockedLogin, sessionId, setsSession } from '../support/person.ts'

type Change = Partial<ClientMetadata>

const MUST_PUSH: Change = { require_pushed_authorization_requests: true }
const MUST_SIGN: Change = { require_signed_request_object: true }

/** Nobody is signed in, nothing goes to the client, and the window keeps its turn. */
async function expectRefused(h: Harness, { login }: DynamicClient, answer: Answer) {
  expectMode(answer, 200, 'verified')
  expect(setsSession(answer)).to.equal(false)
  expect(sessionId(h, login.agent)).to.equal(undefined)
  expect((await pendingOf(h, windowOf(h, login))).continuedAt).to.equal(undefined)
}

/** The link and the window are refused; the same login goes on once the client is as it was. */
async function expectRefusedUntil(h: Harness, client: DynamicClient, restore: () => unknown) {
  const { login } = client
  await expectRefused(h, client, await login.opensElsewhere())
  expect(await login.user.isVerified()).to.equal(true)
  await expectRefused(h, client, await login.goesOn())
  await restore()
  return login.goesOn()
}

describe('A login that waited while its client changed', () => {
  const needsProof = new Set<string>()
  const h = suiteHarness({
    clients: [CLIENT],
    provider: {
      features: THEIR_FEATURES,
      responseTypes: ['code', 'id_token'],
      pkce: { required: (_ctx, { clientId }) => needsProof.has(clientId) },
    },
  })

  const narrower: [title: string, change: Change, send?: Sending][] = [
    ['must push its requests', MUST_PUSH],
    ['must push its requests, and this one was only signed', MUST_PUSH, bySigning],
    ['must sign its requests', MUST_SIGN],
    [
      'must sign its requests, and this one was only pushed, by nobody in particular',
      MUST_SIGN,
      byPushing,
    ],
    ['may not ask for the scope any more', { scope: 'openid' }],
    [
      'may ask for another response type only',
      { response_types: ['id_token'], grant_types: ['implicit'] },
    ],
  ]
  for (const [title, change, send] of narrower) {
    it(`goes nowhere where the client ${title} (RED-15)`, async () => {
      const client = await dynamicLogin(h, { ...(send && { send }) })
      await client.change(change)
      await client.login.comesBack(await expectRefusedUntil(h, client, () => client.change()))
    })
  }

  it('goes nowhere in the browser that logged in either: its window keeps the turn (RED-15)', async () => {
    const client = await dynamicLogin(h)
    await client.change(MUST_PUSH)
    await expectRefused(h, client, await client.login.agent.get(client.login.link))
    await client.change()
    await client.login.comesBack(await client.login.goesOn())
  })

  it('goes nowhere where a scope is gone that a refresh token needs (RED-15)', async () => {
    const client = await dynamicLogin(h, { extra: OFFLINE })
    const { login, change } = client
    await change({ scope: 'openid email' })
    const answer = await expectRefusedUntil(h, client, () => change())
    await expectConsentThenCode(h, login, login.agent, answer)
  })

  it('goes nowhere where the client must prove who redeems the code by now (RED-15)', async () => {
    const client = await dynamicLogin(h, {
      send: async ({ url }) => {
        url.searchParams.delete('code_challenge')
        url.searchParams.delete('code_challenge_method')
        return url
      },
    })
    const clientId = client.login.party.config.clientMetadata().client_id
    needsProof.add(clientId)
    const answer = await expectRefusedUntil(h, client, () => needsProof.delete(clientId))
    expect(answer.location).to.match(/[?&]code=/)
  })

  const proven: [title: string, change: Change, send: Sending][] = [
    ['must push its requests, as it did', MUST_PUSH, byPushing],
    ['must sign its requests, as it did', MUST_SIGN, bySigning],
    ['must sign and push, and did both', { ...MUST_PUSH, ...MUST_SIGN }, bySigningAndPushing],
    ['need not push its requests, and did', {}, byPushing],
  ]
  for (const [title, change, send] of proven) {
    it(`goes on where the client ${title}`, async () => {
      const { login, change: changeClient } = await dynamicLogin(h, { send })
      await changeClient(change)
      await login.opensElsewhere()
      await login.comesBack(await login.goesOn())
    })
  }

  it('of a client that pushed goes nowhere where it may not ask for the scope any more (RED-15)', async () => {
    const client = await dynamicLogin(h, { send: byPushing })
    await client.change({ ...MUST_PUSH, scope: 'openid' })
    const answer = await expectRefusedUntil(h, client, () => client.change(MUST_PUSH))
    await client.login.comesBack(answer)
  })
})

describe('A login by a signed request, where the provider takes none that are pushed', () => {
  const h = suiteHarness({
    clients: [CLIENT, JAR_ONLY],
    provider: { features: { ...THEIR_FEATURES, pushedAuthorizationRequests: { enabled: false } } },
  })

  it('goes on', async () => {
    const login = await signedLogin(h)
    await login.opensElsewhere()
    await login.comesBack(await login.goesOn())
  })

  const gone: [title: string, change: Change][] = [
    ['the redirect URI is no longer the client’s', { redirect_uris: [`${DYNAMIC_URI}/`] }],
    ['the client may no longer ask for a code', MACHINE],
  ]
  for (const [title, change] of gone) {
    it(`goes nowhere once ${title} (RED-05)`, async () => {
      const client = await dynamicLogin(h, { send: bySigning })
      await client.change({ ...MUST_SIGN, ...change })
      const answer = await expectRefusedUntil(h, client, () => client.change(MUST_SIGN))
      await client.login.comesBack(answer)
    })
  }
})

describe('A login that waited, where the host trusts a proxy that ends TLS', () => {
  const behindTls: Host = ({ provider, oauthPath, login }) => {
    const app = new Koa({ proxy: true })
    app.keys = provider.keys
    app.use(async (ctx, next) => {
      if (ctx.path === `${oauthPath}/login`) await login(ctx.req, ctx.res)
      else await next()
    })
    app.use(mount(oauthPath, provider))
    const listener = app.callback()
    return (req, res) => {
      // The addresses that a client discovers stay those of the tests.
      if (!req.url?.includes('/.well-known/')) req.headers['x-forwarded-proto'] = 'https'
      return listener(req, res)
    }
  }
  const secure = { long: { secure: true }, short: { secure: true } }
  const h = suiteHarness({
    provider: { cookies: { keys: ['a cookie key of the tests'], ...secure } },
    host: behindTls,
  })

  it('goes on, with cookies for https alone', async () => {
    const login = await blockedLogin(h)
    await login.opensElsewhere()
    const answer = await login.goesOn()
    // Ours is so where the base URL is https, which it is not here.
    const theirs = answer.headers
      .getSetCookie()
      .filter((line) => !line.startsWith('account_flows_'))
    expect(theirs).not.to.deep.equal([])
    for (const line of theirs) expect(line).to.include('; secure')
    await login.comesBack(answer)
  })
})

describe('A link whose request the provider cannot judge, because what is in front of it fails', () => {
  let fails: 'not' | 'gone' | 'broken' | 'busy' = 'not'
  const h = suiteHarness({ mayLogErrors: true })
  before(() => {
    h.provider.use(async (ctx, next) => {
      const isOurs = fails !== 'not' && ctx.path === '/auth'
      if (isOurs && fails === 'gone') throw new AccountFlowsError('ERR_STORE_UNAVAILABLE', 'gone')
      if (isOurs && fails === 'broken') throw new Error('broken')
      if (isOurs) ctx.status = 429
      else await next()
    })
  })

  for (const [how, status] of [
    ['gone', 503],
    ['broken', 500],
    ['busy', 500],
  ] as const) {
    it(`is not used up: ${how}, and finishes its request afterwards (RED-15)`, async () => {
      const login = await blockedLogin(h)
      fails = how
      const answer = await login.agent.get(login.link)
      fails = 'not'
      expect(answer.status).to.equal(status)
      expect([answer.location, setsSession(answer)]).to.deep.equal([undefined, false])
      expect(await login.isVerified()).to.equal(false)
      await login.comesBack(await login.agent.get(login.link))
    })
  }
})
