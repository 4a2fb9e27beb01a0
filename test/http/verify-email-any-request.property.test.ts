import { expect } from 'chai'
import * as fc from 'fast-check'
import { createRemoteJWKSet, decodeJwt, exportJWK, generateKeyPair, jwtVerify } from 'jose'
import type { ClientMetadata, Configuration } from 'oidc-provider'
import * as client from 'openid-client'
import type { User } from '../../src/index.ts'
import { forgetInteraction, partyOf, pushedRequest } from '../support/clients.ts'
import { consent, postLogin } from '../support/oauth-requests.ts'
import { suiteHarness } from '../support/harness.ts'
import {
  createUserAgent,
  decodeEntities,
  type Answer,
  type UserAgent,
} from '../support/user-agent.ts'

const RUNS_PER_KIND = 3
/** The level that every login of the tests reaches. */
const ACR = 'silver'
const redirectUris = ['https://any.example/cb', 'https://any.example/tenants/a%20b/cb']
const resourceServers = ['https://one.example/api', 'urn:example:two?of=2']
const apiScopes = ['api:read', 'api:write']
const API_SCOPES = apiScopes.join(' ')
const WAYS = [
  'in the same browser',
  'in another browser',
  'with the interaction gone',
  'in the window that waited',
  'in the window that waited, after the link finished it elsewhere',
] as const

const PUBLIC = {
  client_id: 'public',
  redirect_uris: redirectUris,
  response_types: ['code', 'code id_token'],
  grant_types: ['authorization_code', 'implicit', 'refresh_token'],
  token_endpoint_auth_method: 'none',
  request_object_signing_alg: 'ES256',
} as const satisfies ClientMetadata
const CONFIDENTIAL = {
  ...PUBLIC,
  client_id: 'confidential',
  client_secret: 'the secret of the confidential client',
  token_endpoint_auth_method: 'client_secret_basic',
} as const satisfies ClientMetadata

/** A legal authorization request, and how it reaches the provider. */
interface AnyRequest {
  isConfidential: boolean
  isPushed: boolean
  isSigned: boolean
  redirectUri: string
  resources: string[]
  /** The other parameters; those of `undefined` are left out. */
  parameters: Record<string, string | undefined>
}

const OF_BOTH = [undefined, 'fragment', 'form_post', 'jwt', 'fragment.jwt', 'form_post.jwt']
/** Response type and mode; without a mode, the provider's own choice. */
const responseKinds = [
  ...[...OF_BOTH, 'query', 'query.jwt'].map((mode) => ({ type: 'code', mode }) as const),
  ...OF_BOTH.map((mode) => ({ type: 'code id_token', mode }) as const),
]
type ResponseKind = (typeof responseKinds)[number]

/** How an answer of this kind comes to the client. */
function deliveryOf({ type, mode = 'default' }: ResponseKind) {
  const [base = ''] = mode.split('.')
  const byDefault = type === 'code' ? 'query' : 'fragment'
  return {
    mode: ['default', 'jwt'].includes(base) ? byDefault : base,
    isSigned: mode.endsWith('jwt'),
  }
}

const openIdScopes = ['email', 'offline_access', ...apiScopes]
const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 })
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

const askedClaim = fc.constantFrom(null, { essential: true })
const askedLevel = fc.constantFrom(
  null,
  { essential: true },
  { value: ACR },
  { essential: true, values: ['gold', ACR] },
)
const askedEmail = { email: askedClaim, email_verified: askedClaim }
const inUserinfo = fc.record(askedEmail, { requiredKeys: [] })
const inIdToken = fc.record(
  { ...askedEmail, auth_time: askedClaim, acr: askedLevel },
  { requiredKeys: [] },
)
const claims = fc.oneof(
  fc.record({ id_token: inIdToken }),
  fc.record({ userinfo: inUserinfo }),
  fc.record({ id_token: inIdToken, userinfo: inUserinfo }),
)

/** Any request that OpenID Connect or plain OAuth allows for this kind of response. */
function anyRequest({ type, mode }: ResponseKind): fc.Arbitrary<AnyRequest> {
  const isHybrid = type === 'code id_token'
  const isOpenId = isHybrid ? fc.constant(true) : fc.nat(4).map((n) => n > 0)
  return isOpenId.chain((openId) => {
    const ofOpenId = <T>(arbitrary: fc.Arbitrary<T>) =>
      openId ? arbitrary : fc.constant(undefined)
    return fc.record({
      isConfidential: fc.boolean(),
      isPushed: fc.boolean(),
      isSigned: fc.boolean(),
      redirectUri: fc.constantFrom(...redirectUris),
      resources: fc.subarray(resourceServers, { minLength: openId ? 0 : 1 }),
      parameters: fc.record({
        response_type: fc.constant<string>(type),
        response_mode: fc.constant(mode),
        scope: fc
          .subarray(openId ? openIdScopes : apiScopes, { minLength: 1 })
          .map((scopes) => [...(openId ? ['openid'] : []), ...scopes].join(' ')),
        state: maybe(fc.oneof({ weight: 5, arbitrary: text }, fc.constant(''))),
        nonce: ofOpenId(isHybrid ? text : maybe(text)),
        claims: ofOpenId(maybe(claims.map((asked) => JSON.stringify(asked)))),
        max_age: ofOpenId(maybe(fc.integer({ min: 600, max: 100_000 }).map(String))),
        acr_values: ofOpenId(maybe(fc.constantFrom(ACR, `gold ${ACR}`, 'gold'))),
        ui_locales: maybe(fc.constantFrom('de', 'ar fr', 'x-none en')),
        prompt: maybe(fc.constantFrom('login', 'consent', 'login consent', 'consent login')),
        display: maybe(fc.constantFrom('page', 'popup')),
        login_hint: maybe(text),
      }),
    })
  })
}

/** What reached the client, in whichever mode it came. */
interface AuthorizationAnswer {
  mode: 'query' | 'fragment' | 'form_post'
  /** Inside a JWT of the provider (JARM). */
  isSigned: boolean
  redirectUri: string
  parameters: Record<string, string>
}

type Json = Record<string, unknown>

/** Reads an answer as the client would, and checks the signature of a signed one. */
async function readAnswer(
  answer: Answer,
  config: client.Configuration,
): Promise<AuthorizationAnswer> {
  const read = answer.location === undefined ? fromForm(answer.text, answer) : fromUrl(answer)
  const { response, ...others } = read.parameters
  if (response === undefined) return { ...read, isSigned: false }
  if (Object.keys(others).length > 0) throw new Error('there is more than the signed response')
  const { issuer, jwks_uri: jwks = '' } = config.serverMetadata()
  const { payload } = await jwtVerify(response, createRemoteJWKSet(new URL(jwks)), {
    issuer,
    audience: config.clientMetadata().client_id,
    requiredClaims: ['exp'],
  })
  const { aud: _aud, exp: _exp, iat: _iat, ...signed } = payload
  return { ...read, isSigned: true, parameters: signed as Record<string, string> }
}

function fromUrl({ location = '' }: Answer): Omit<AuthorizationAnswer, 'isSigned'> {
  const url = new URL(location)
  if (url.search !== '' && url.hash !== '') throw new Error(`two modes in one: ${location}`)
  const parameters = new URLSearchParams(url.search || url.hash.slice(1))
  return {
    mode: url.hash === '' ? 'query' : 'fragment',
    redirectUri: url.origin + url.pathname,
    parameters: Object.fromEntries(parameters),
  }
}

function fromForm(html: string, { hidden }: Answer): Omit<AuthorizationAnswer, 'isSigned'> {
  const action = /<form method="post" action="([^"]*)"/.exec(html)?.[1]
  if (action === undefined) throw new Error(`neither a redirect nor a form: ${html}`)
  return { mode: 'form_post', redirectUri: decodeEntities(action), parameters: hidden }
}

/** Redeems the code with `openid-client`; answers all that the client learns, without codes, times and ids. */
async function redeem(
  { redirectUri, parameters }: AuthorizationAnswer,
  { resources: [resource], parameters: asked }: AnyRequest,
  config: client.Configuration,
  checks: client.AuthorizationCodeGrantChecks,
  user: User,
): Promise<Json> {
  const url = new URL(redirectUri)
  const part = asked['response_type'] === 'code' ? 'search' : 'hash'
  url[part] = new URLSearchParams(parameters).toString()
  const tokens = await client.authorizationCodeGrant(config, url, checks, {
    ...(resource !== undefined && { resource }),
  })
  const { access_token: accessToken, id_token: idToken, ...others } = tokens
  const isOpenId = idToken !== undefined
  const known = (claims: object) => withoutIds(claims, user)
  return {
    answer: known({
      ...parameters,
      ...(parameters['id_token'] && { id_token: known(decodeJwt(parameters['id_token'])) }),
    }),
    tokens: known(others),
    idToken: isOpenId && known(decodeJwt(idToken)),
    accessToken: known(
      resource === undefined
        ? await client.tokenIntrospection(config, accessToken)
        : decodeJwt(accessToken),
    ),
    userinfo:
      isOpenId &&
      resource === undefined &&
      known(await client.fetchUserInfo(config, accessToken, user.id)),
  }
}

const NEVER_TWICE = new Set(['code', 'iat', 'exp', 'auth_time', 'jti', 'sid', 'at_hash', 'c_hash'])

/** Of what differs between any two logins only the type is kept, and the user is one person like another. */
function withoutIds(claims: object, { id, email }: User): Json {
  const isKept = ([, value]: [string, unknown]) => typeof value !== 'function'
  const entries = Object.entries(claims).filter(isKept)
  return Object.fromEntries(
    entries.map(([name, value]) => {
      if (NEVER_TWICE.has(name) || name.endsWith('_token')) {
        return [name, typeof value === 'object' ? value : typeof value]
      }
      if (name === 'sub' && value === id) return [name, 'the user']
      if (name === 'email' && value === email) return [name, 'of the user']
      return [name, value]
    }),
  )
}

describe('An e-mail verification amid any legal authorization request', () => {
  let signingKey: CryptoKey
  const h = suiteHarness(async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256')
    const jwks = { keys: [await exportJWK(publicKey)] }
    signingKey = privateKey
    return {
      clients: [PUBLIC, CONFIDENTIAL].map((metadata) => ({ ...metadata, jwks })),
      settings: { requests_per_ip_per_minute: '0', mails_per_minute: '0' },
      provider: everyFeature,
      // All logins reach one level.
      finishLogin: (req, res, login) =>
        h.flows.finishLogin(req, res, { ...login, acr: ACR, amr: ['pwd'] }),
    }
  })
  const configs = new Map<string, client.Configuration>()
  /** By account: the parameters of its latest request that the provider vouches for to the host. */
  const trusted = new Map<string | undefined, string[] | undefined>()

  before(async () => {
    h.provider.on('authorization.success', ({ oidc }) => {
      trusted.set(oidc.session?.accountId, oidc.trusted?.toSorted())
    })
    for (const isConfidential of [false, true]) {
      for (const type of ['code', 'code id_token']) {
        const { config } = await partyOf(h, isConfidential ? CONFIDENTIAL : PUBLIC)
        if (type !== 'code') client.useCodeIdTokenResponseType(config)
        configs.set(`${isConfidential} ${type}`, config)
      }
    }
  })

  const configOf = ({ isConfidential, parameters }: AnyRequest) => {
    const config = configs.get(`${isConfidential} ${parameters['response_type']}`)
    if (!config) throw new Error('no such client')
    return config
  }

  async function send(request: AnyRequest, verifier: string): Promise<URL> {
    const config = configOf(request)
    const { isPushed, isSigned, redirectUri, resources, parameters } = request
    const sent = new URLSearchParams({
      redirect_uri: redirectUri,
      code_challenge: await client.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== undefined) sent.append(name, value)
    }
    for (const resource of resources) sent.append('resource', resource)
    const direct = isSigned
      ? await client.buildAuthorizationUrlWithJAR(config, sent, signingKey)
      : client.buildAuthorizationUrl(config, sent)
    return isPushed ? client.buildAuthorizationUrlWithPAR(config, direct.searchParams) : direct
  }

  /** Goes on to the client; signs in and consents where it is asked to. */
  async function toClient(agent: UserAgent, first: Answer, user: User) {
    let answer = await h.follow(agent, first)
    const isSignedInAgain = answer.page === 'login' && answer.mode === 'login'
    if (isSignedInAgain) answer = await h.follow(agent, await postLogin(h, agent, user))
    const isAsked = answer.page === 'login' && answer.mode === 'consent'
    if (isAsked) answer = await consent(h, agent)
    return { isAsked, isSignedInAgain, answer }
  }

  /** All that the client and the person see of this login, from the credentials on. */
  async function outcome(
    [request, verifier, url]: [request: AnyRequest, verifier: string, url: URL],
    user: User,
    agent: UserAgent,
    first: Answer,
  ) {
    const { isAsked, isSignedInAgain, answer } = await toClient(agent, first, user)
    const config = configOf(request)
    const { nonce, max_age: maxAge } = request.parameters
    // An empty parameter is none.
    const state = request.parameters['state'] === '' ? undefined : request.parameters['state']
    const read = await readAnswer(answer, config)
    expect([read.redirectUri, read.parameters['state']]).to.deep.equal([request.redirectUri, state])
    const checks = {
      pkceCodeVerifier: verifier,
      ...(state !== undefined && { expectedState: state }),
      ...(nonce !== undefined && { expectedNonce: nonce }),
      ...(maxAge !== undefined && { maxAge: Number(maxAge) }),
    }
    return {
      isAsked,
      isSignedInAgain,
      mode: read.mode,
      isSigned: read.isSigned,
      ...(await redeem(read, request, config, checks, user)),
      trusted: trusted.get(user.id),
      // A pushed request is good for one answer.
      pushed: request.isPushed && (await createUserAgent().get(url)).status,
    }
  }

  async function verified(request: AnyRequest, verifier: string) {
    const user = await h.addVerified()
    const url = await send(request, verifier)
    const first = await h.login(user.agent, url, user.username)
    return outcome([request, verifier, url], user, user.agent, first)
  }

  async function unverified(request: AnyRequest, verifier: string, way: (typeof WAYS)[number]) {
    const url = await send(request, verifier)
    const login = await h.blockedLogin({ send: () => url })
    if (way === 'with the interaction gone') {
      await forgetInteraction(h, login)
      await (await pushedRequest(h, url))?.destroy()
    }
    if (way === 'in the window that waited') {
      expect(await h.users.markEmailVerified(login.id, login.email ?? '')).to.equal(true)
    }
    if (way.endsWith('elsewhere')) await login.opensElsewhere()
    const waited = way.startsWith('in the window')
    const there = way === 'in the same browser' || waited ? login : login.in()
    const first = waited ? await there.goesOn() : await there.opensLink()
    const ends = await outcome([request, verifier, url], login, there.agent, first)
    const isPage = ends.mode === 'form_post' && !ends.isAsked && !ends.isSignedInAgain
    expect(first.status, 'in one response').to.equal(isPage ? 200 : 302)
    expect(await login.isVerified()).to.equal(true)
    return ends
  }

  for (const kind of responseKinds) {
    const tier = kind.mode === undefined || kind.mode === 'form_post.jwt' ? '' : ' [full]'
    const mode = kind.mode === undefined ? 'its default mode' : `mode ${kind.mode}`
    it(`changes nothing of the answer: ${kind.type}, in ${mode}${tier}`, async () => {
      await fc.assert(
        fc.asyncProperty(anyRequest(kind), async (request) => {
          const verifier = client.randomPKCECodeVerifier()
          const [ordinary, ...resumed] = await Promise.all([
            verified(request, verifier),
            ...WAYS.map((way) => unverified(request, verifier, way)),
          ])
          expect(ordinary).to.deep.include(deliveryOf(kind))
          expect(ordinary.pushed).to.equal(request.isPushed && 400)
          for (const [at, way] of WAYS.entries()) {
            const isByEmail = way === 'in another browser' || way === 'with the interaction gone'
            expect(resumed[at], way).to.deep.equal(
              isByEmail ? byEmail(ordinary, request, resumed[at]) : ordinary,
            )
          }
        }),
        { numRuns: RUNS_PER_KIND },
      )
    })
  }
})

/** No password was given in this browser: it claims no level of the login, and is asked where the client insists on one. */
function byEmail(
  ordinary: object,
  { parameters }: AnyRequest,
  { isSignedInAgain = false }: { isSignedInAgain?: boolean } = {},
): unknown {
  const insists = parameters['claims']?.includes('"values"') ?? false
  if (insists && isSignedInAgain) return { ...ordinary, isSignedInAgain }
  return JSON.parse(JSON.stringify(ordinary), (name, value: unknown) =>
    name === 'acr' ? undefined : value,
  )
}

/** Consent is asked where the request asks for it; a grant then has all that was requested. */
const loadExistingGrant: Configuration['loadExistingGrant'] = async ({ oidc }) => {
  const { client, session, provider, params, result } = oidc
  const given = result?.consent?.grantId
  if (given === undefined && String(params?.['prompt']).includes('consent')) return undefined
  const grant =
    (given !== undefined && (await provider.Grant.find(given))) ||
    new provider.Grant({ accountId: session?.accountId, clientId: client?.clientId })
  grant.addOIDCScope('openid email offline_access')
  grant.addOIDCClaims(['email', 'email_verified'])
  for (const resource of resourceServers) grant.addResourceScope(resource, API_SCOPES)
  await grant.save()
  return grant
}

const everyFeature: Configuration = {
  loadExistingGrant,
  acrValues: ['gold', ACR],
  features: {
    devInteractions: { enabled: false },
    introspection: { enabled: true },
    claimsParameter: { enabled: true },
    jwtResponseModes: { enabled: true },
    pushedAuthorizationRequests: { enabled: true },
    requestObjects: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_ctx, resource) => ({
        scope: API_SCOPES,
        audience: resource,
        accessTokenFormat: 'jwt',
      }),
    },
  },
}
