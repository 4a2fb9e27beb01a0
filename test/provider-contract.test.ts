import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { ClientLogout } from '../src/store/index.ts'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import type { Context } from 'koa'
import { errors, Provider, type Configuration, type Interaction } from 'oidc-provider'
import { createNotifyClient, isBackchannelLogoutOn } from '../src/oidc/backchannel-logout.ts'
import { suiteServed } from './support/serve.ts'
import { createUserAgent, type Answer } from './support/user-agent.ts'

const CLIENT_ID = 'app'
const REDIRECT_URI = 'https://app.example/cb'
const ACCOUNT_ID = 'alice'
const PARAMS = {
  client_id: CLIENT_ID,
  redirect_uri: REDIRECT_URI,
  response_type: 'code',
  scope: 'openid',
  state: 'state of the request',
  nonce: 'nonce of the request',
}
/** All that a captured request and its login consist of. */
const PAYLOAD = {
  params: PARAMS,
  prompt: { name: 'login', reasons: ['no_session'], details: {} },
  trusted: ['claims'],
  cid: 'correlation',
  parJti: 'pushed',
  deviceCode: 'device',
  lastSubmission: { login: { accountId: 'bob' } },
  returnTo: 'https://idp.example/auth/uid',
  result: { login: { accountId: ACCOUNT_ID, acr: 'gold', amr: ['pwd'], ts: 1_700_000_000 } },
}

/**
 * What `src/oidc/resume.ts` knows about oidc-provider and its documentation does not promise. These tests run without the
 * flows: where one fails after an upgrade, oidc-provider has changed, and the resumption has to follow.
 */
describe('oidc-provider, as the resumption knows it', () => {
  const served = suiteServed((req, res) => void provider.callback()(req, res))
  let issuer: string
  let provider: Provider
  const newUid = () => randomBytes(32).toString('base64url')

  before(() => {
    issuer = served.url
    provider = plainProvider(issuer)
    provider.use((ctx, next) => {
      if (ctx.path === '/hand-over') handOver(provider, ctx)
      return next()
    })
  })

  /** Saves an interaction that nobody began in this browser. */
  async function save(uid: string, payload: object): Promise<void> {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- this is the contract: the types do not have it
    const create = provider.Interaction as unknown as new (uid: string, p: object) => Interaction
    await new create(uid, payload).save(60)
  }

  /** A login that can go on; answers its uid. */
  async function savedLogin(more: object = {}): Promise<string> {
    const uid = newUid()
    const none = { parJti: undefined, deviceCode: undefined, lastSubmission: undefined }
    await save(uid, { ...PAYLOAD, ...none, ...more })
    return uid
  }

  /** What the provider itself saves for a request, and what it answers. */
  async function begun() {
    const query = new URLSearchParams(PARAMS).toString()
    const answer = await createUserAgent().get(`${issuer}/auth?${query}`)
    const uid = answer.location?.split('/').at(-1) ?? ''
    return { answer, uid, found: await provider.Interaction.find(uid) }
  }

  /** Enters the route with this resume cookie, which the browser never had. */
  const enter = (route: string, uid: string, cookie: Record<string, string>) => {
    const query = new URLSearchParams({ path: provider.pathFor(route, { uid }), ...cookie })
    return createUserAgent().get(`${issuer}/hand-over?${query.toString()}`)
  }

  const resume = (uid: string) => enter('resume', uid, { cookie: uid })

  function expectNotFound(answer: Answer, description: string) {
    expect(answer.status, answer.text).to.equal(400)
    expect(answer.text).to.include('invalid_request').and.to.include(description)
    expect(answer.location).to.equal(undefined)
  }

  async function redeem(answer: Answer) {
    expect(answer.status, answer.text).to.equal(303)
    const location = new URL(answer.location ?? '')
    expect(location.href.split('?')[0]).to.equal(REDIRECT_URI)
    expect(location.searchParams.get('state')).to.equal(PARAMS.state)
    const body = await post('/token', {
      grant_type: 'authorization_code',
      client_id: CLIENT_ID,
      redirect_uri: REDIRECT_URI,
      code: location.searchParams.get('code') ?? '',
    })
    return decodeJwt(String(body['id_token']))
  }

  async function post(path: string, form: Record<string, string>) {
    const { text } = await createUserAgent().post(issuer + path, form)
    return JSON.parse(text) as Record<string, unknown>
  }

  describe('provider.Interaction', () => {
    it('is made from a uid and a payload, saved for some seconds with every field, and found by that uid only', async () => {
      const uid = newUid()
      await save(uid, PAYLOAD)
      const found = await provider.Interaction.find(uid)
      expect(found?.uid, 'the first argument is the uid').to.equal(uid)
      expect(await provider.Interaction.find(newUid())).to.equal(undefined)
      for (const [field, value] of Object.entries(PAYLOAD)) {
        expect(Reflect.get(found ?? {}, field), field).to.deep.equal(value)
      }
    })

    it('has these fields, and no other, in an interaction of the provider itself', async () => {
      const { found } = await begun()
      const own = ['exp', 'iat', 'jti', 'kind', 'session', 'grantId']
      const kept = Object.entries(found ?? {}).filter(([, value]) => value !== undefined)
      expect(kept.map(([name]) => name)).to.include.members(['params', 'prompt', 'cid', 'returnTo'])
      expect([...Object.keys(PAYLOAD), ...own]).to.include.members(kept.map(([name]) => name))
      expect(found?.params).to.deep.include(PARAMS)
    })
  })

  describe('the resume cookie', () => {
    it("is the one that the provider sets, with the interaction's uid as its value, for the resume route's path", async () => {
      const { answer, uid } = await begun()
      const lines = answer.headers.getSetCookie()
      const line = lines.find((each) => each.startsWith(`${provider.cookieName('resume')}=`))
      expect(line)
        .to.include(`=${uid};`)
        .and.to.include(`path=${provider.pathFor('resume', { uid })};`)
    })

    it('is good for one resumption: the login goes on to the client, and the interaction is used up', async () => {
      const uid = await savedLogin()
      const claims = await redeem(await resume(uid))
      expect(claims).to.deep.include({ sub: ACCOUNT_ID, nonce: PARAMS.nonce, acr: 'gold' })
      expect(claims['auth_time'], '`result.login.ts`').to.equal(PAYLOAD.result.login.ts)
      expect(await provider.Interaction.find(uid)).to.equal(undefined)
      expectNotFound(await resume(uid), 'interaction session not found')
    })

    it('decides alone: without it, or with any other value, there is no login', async () => {
      const uid = await savedLogin()
      const other = await savedLogin({ params: { ...PARAMS, state: 'state of another request' } })

      expectNotFound(await enter('resume', uid, {}), 'authorization request has expired')
      const unknown = await enter('resume', uid, { cookie: newUid() })
      expectNotFound(unknown, 'interaction session not found')
      const crossed = await enter('resume', uid, { cookie: other })
      const state = new URL(crossed.location ?? 'none:').searchParams.get('state')
      expect(state, 'the cookie, not the path, says which').to.equal('state of another request')

      expect((await redeem(await resume(uid))).sub).to.equal(ACCOUNT_ID)
    })

    it('is read with the signature that `ctx.cookies.keys` makes, and refused with another', async () => {
      const uid = await savedLogin()
      for (const signature of ['', 'forged']) {
        const answer = await enter('resume', uid, { cookie: uid, signature })
        expectNotFound(answer, 'authorization request has expired')
      }
      expect((await redeem(await resume(uid))).sub).to.equal(ACCOUNT_ID)
    })
  })

  describe('pathFor', () => {
    it('knows the routes `resume` and `device_resume`, and no other name, and puts the mount path before', () => {
      const pathOf = (route: string, mountPath = '') =>
        provider.pathFor(route, { uid: 'uid', mountPath })
      expect([pathOf('resume'), pathOf('device_resume')]).to.deep.equal([
        '/auth/uid',
        '/device/uid',
      ])
      expect(pathOf('resume', '/oauth2')).to.equal('/oauth2/auth/uid')
      expect(() => pathOf('resumption')).to.throw(Error)
    })

    it('gives with `resume` the address to which the provider itself returns', async () => {
      const { uid, found } = await begun()
      const returnTo = new URL(provider.pathFor('resume', { uid }), issuer).href
      expect(found?.returnTo).to.equal(returnTo)
    })

    it('gives with `device_resume` the address where the login of a device goes on', async () => {
      const asked = await post('/device/auth', { client_id: CLIENT_ID, scope: 'openid' })
      const found = await provider.DeviceCode.findByUserCode(
        String(asked['user_code']).replaceAll('-', ''),
        { ignoreExpiration: true },
      )
      const device = { deviceCode: found?.jti, params: found?.params }
      const redeemed = () =>
        post('/token', {
          grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
          client_id: CLIENT_ID,
          device_code: String(asked['device_code']),
        })

      await resume(await savedLogin(device))
      expect((await redeemed())['error'], 'not for `resume`').to.equal('authorization_pending')

      const uid = await savedLogin(device)
      const answer = await enter('device_resume', uid, { cookie: uid })
      expect(answer.status, answer.text).to.equal(200)
      expect(decodeJwt(String((await redeemed())['id_token'])).sub).to.equal(ACCOUNT_ID)
    })
  })
})

/** What `src/oidc/backchannel-logout.ts` knows about oidc-provider. */
describe('oidc-provider, as the telling of clients knows it', () => {
  const posted: { url: string; token: string }[] = []
  const metadata = {
    client_id: CLIENT_ID,
    redirect_uris: [REDIRECT_URI],
    token_endpoint_auth_method: 'none',
    backchannel_logout_uri: 'https://app.example/logged-out',
    subject_type: 'pairwise',
  } as const
  const providerWith = (more: Configuration = {}) =>
    new Provider('https://idp.example', {
      clients: [{ ...metadata, backchannel_logout_session_required: true }],
      subjectTypes: ['public', 'pairwise'],
      pairwiseIdentifier: (_ctx, accountId) => `pairwise ${accountId}`,
      features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
      async fetch(url, init) {
        const form = init?.body instanceof URLSearchParams ? init.body : new URLSearchParams()
        posted.push({ url: new Request(url).url, token: form.get('logout_token') ?? '' })
        return new Response()
      },
      ...more,
    })

  function compared(token: string) {
    const { iat, exp, jti, ...claims } = decodeJwt(token)
    const types = [iat, exp, jti].map((claim) => typeof claim)
    expect(types).to.deep.equal(['number', 'number', 'string'])
    return { header: decodeProtectedHeader(token), life: Number(exp) - Number(iat), claims }
  }

  it('makes the same logout token as `client.backchannelLogout`, for two minutes', async () => {
    const provider = providerWith()
    const client = await provider.Client.find(CLIENT_ID)
    const logout: unknown = Reflect.get(client ?? {}, 'backchannelLogout')
    if (typeof logout !== 'function') throw new Error('it has another name')
    await Reflect.apply(logout, client, [ACCOUNT_ID, 'the session'])
    const [own = expect.fail('nothing was posted')] = posted
    expect(own.url).to.equal(metadata.backchannel_logout_uri)

    let told = ''
    const notify = createNotifyClient({
      provider: () => provider,
      async post(_uri, form) {
        told = form['logout_token'] ?? ''
        return undefined
      },
      log: () => {},
    })
    const logoutOf = { accountId: ACCOUNT_ID, clientId: CLIENT_ID, sid: 'the session' }
    await notify(logoutOf as ClientLogout, new AbortController().signal)
    expect(compared(told)).to.deep.equal(compared(own.token))
    const { life, header, claims } = compared(told)
    expect([life, header.typ]).to.deep.equal([120, 'logout+jwt'])
    expect(claims).to.include({ sub: `pairwise ${ACCOUNT_ID}`, sid: 'the session' })
  })

  it('knows the address of a client for it only where it is switched on', () => {
    const off = { devInteractions: { enabled: false } }
    expect(isBackchannelLogoutOn(providerWith())).to.equal(true)
    expect(isBackchannelLogoutOn(providerWith({ features: off, clients: [] }))).to.equal(false)
  })

  for (const error of [new errors.InvalidClientMetadata('team is missing'), new Error('no team')]) {
    it(`may ask more of clients than we know: then each client tells by itself (${error.name})`, () => {
      const extraClientMetadata = {
        properties: ['team'],
        validator(_ctx: unknown, _key: string, value: unknown) {
          if (typeof value !== 'string') throw error
        },
      }
      const provider = providerWith({ extraClientMetadata, clients: [] })
      expect(isBackchannelLogoutOn(provider)).to.equal(true)
    })
  }
})

function plainProvider(issuer: string): Provider {
  return new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT_ID,
        redirect_uris: [REDIRECT_URI],
        token_endpoint_auth_method: 'none',
        grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
      },
    ],
    claims: { openid: ['sub', 'acr', 'auth_time'] },
    cookies: { keys: ['a cookie key of the tests'] },
    features: { devInteractions: { enabled: false }, deviceFlow: { enabled: true } },
    interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
    pkce: { required: () => false },
    findAccount: (_ctx, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    loadExistingGrant,
  })
}

const loadExistingGrant: Configuration['loadExistingGrant'] = async ({ oidc }) => {
  const { client, session, provider } = oidc
  const grant = new provider.Grant({
    accountId: session?.accountId,
    clientId: client?.clientId,
  })
  grant.addOIDCScope('openid')
  await grant.save()
  return grant
}

/** Rewrites this request as the resumption does: another path, and a cookie that the browser did not send. */
function handOver(provider: Provider, ctx: Context): void {
  const { path, cookie, signature } = ctx.query
  const name = provider.cookieName('resume')
  if (typeof cookie === 'string') {
    const keys = Reflect.get(ctx.cookies, 'keys') as { sign(data: string): string }
    const pairs = [`${name}=${cookie}`]
    const signed = typeof signature === 'string' ? signature : keys.sign(`${name}=${cookie}`)
    if (signed !== '') pairs.push(`${name}.sig=${signed}`)
    ctx.req.headers.cookie = pairs.join('; ')
  }
  ctx.url = String(path)
}
