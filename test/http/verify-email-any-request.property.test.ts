import { expect } from 'chai'
import * as fc from 'fast-check'
import { exportJWK, generateKeyPair } from 'jose'
import type { ClientMetadata, Configuration } from 'oidc-provider'
import * as client from 'openid-client'
import type { User } from '../../src/index.ts'
import { koaHost } from '../../examples/hosts/koa.ts'
import {
  ACR,
  anyRequest,
  apiScopes,
  deliveryOf,
  redirectUris,
  resourceServers,
  responseKinds,
  type AnyRequest,
} from '../support/any-authorization-request.ts'
import { readAnswer, redeem } from '../support/authorization-answer.ts'
import { PASSWORD, startHarness, type Harness, type Host } from '../support/harness.ts'
import { createUserAgent, type Answer, type UserAgent } from '../support/user-agent.ts'
import { windowOf } from '../support/waiting-window.ts'
import { addVerified, blockedLogin } from '../support/person.ts'

const RUNS_PER_KIND = 3
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

/** One sending of a request, and who signs in. */
interface Attempt {
  request: AnyRequest
  verifier: string
  url: URL
  user: User
}

describe('An e-mail verification amid any legal authorization request', () => {
  let h: Harness
  let signingKey: CryptoKey
  const configs = new Map<string, client.Configuration>()
  /** By account: the parameters of its latest request that the provider vouches for to the host. */
  const trusted = new Map<string | undefined, string[] | undefined>()

  before(async () => {
    const { privateKey, publicKey } = await generateKeyPair('ES256')
    const jwks = { keys: [await exportJWK(publicKey)] }
    signingKey = privateKey
    h = await startHarness({
      clients: [PUBLIC, CONFIDENTIAL].map((metadata) => ({ ...metadata, jwks })),
      settings: { requests_per_ip_per_minute: '0', mails_per_minute: '0' },
      provider: everyFeature,
      host: hostOfOneLevel(() => h),
    })
    h.provider.on('authorization.success', ({ oidc }) => {
      trusted.set(oidc.session?.accountId, oidc.trusted?.toSorted())
    })
    for (const isConfidential of [false, true]) {
      for (const isHybrid of [false, true]) {
        const config = await discover(h.oauthUrl, isConfidential)
        if (isHybrid) client.useCodeIdTokenResponseType(config)
        configs.set(`${isConfidential} ${isHybrid}`, config)
      }
    }
  })
  after(() => h.close())

  const isHybrid = ({ parameters }: AnyRequest) => parameters['response_type'] !== 'code'
  const configOf = (request: AnyRequest) => {
    const config = configs.get(`${request.isConfidential} ${isHybrid(request)}`)
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
  async function toClient(agent: UserAgent, first: Answer, { username }: User) {
    let answer = await h.follow(agent, first)
    const isSignedInAgain = answer.page === 'login' && answer.mode === 'login'
    if (isSignedInAgain) {
      answer = await h.follow(agent, await agent.post(answer.url, { username, password: PASSWORD }))
    }
    const isAsked = answer.page === 'login' && answer.mode === 'consent'
    if (isAsked) {
      answer = await h.follow(agent, await agent.post(answer.url, { consent: 'yes' }))
    }
    return { isAsked, isSignedInAgain, answer }
  }

  /** All that the client and the person see of this login, from the credentials on. */
  async function outcome(
    { request, verifier, url, user }: Attempt,
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
    const learned = await redeem(
      read,
      {
        config,
        isHybrid: isHybrid(request),
        resource: request.resources[0],
        checks: {
          pkceCodeVerifier: verifier,
          ...(state !== undefined && { expectedState: state }),
          ...(nonce !== undefined && { expectedNonce: nonce }),
          ...(maxAge !== undefined && { maxAge: Number(maxAge) }),
        },
      },
      user,
    )
    return {
      isAsked,
      isSignedInAgain,
      mode: read.mode,
      isSigned: read.isSigned,
      ...learned,
      trusted: trusted.get(user.id),
      // A pushed request is good for one answer.
      pushed: request.isPushed && (await createUserAgent().get(url)).status,
    }
  }

  async function verified(request: AnyRequest, verifier: string) {
    const agent = createUserAgent()
    const user = await addVerified(h)
    const url = await send(request, verifier)
    const first = await h.login(agent, url, user.username)
    return outcome({ request, verifier, url, user }, agent, first)
  }

  async function unverified(request: AnyRequest, verifier: string, way: (typeof WAYS)[number]) {
    const url = await send(request, verifier)
    const login = await blockedLogin(h, { send: () => url })
    if (way === 'with the interaction gone') await forget(login.interaction, url)
    const window = windowOf(h, login)
    if (way === 'in the window that waited') await verifyByOtherMeans(login)
    if (way.endsWith('elsewhere')) await login.opensElsewhere()
    const waited = way.startsWith('in the window')
    const agent = way === 'in the same browser' || waited ? login.agent : createUserAgent()
    const first = waited ? await window.goOn() : await agent.get(login.link)
    const ends = await outcome({ request, verifier, url, user: login }, agent, first)
    const isPage = ends.mode === 'form_post' && !ends.isAsked && !ends.isSignedInAgain
    expect(first.status, 'in one response').to.equal(isPage ? 200 : 302)
    expect(await login.isVerified()).to.equal(true)
    return ends
  }

  async function verifyByOtherMeans({ id, email = '' }: User): Promise<void> {
    expect(await h.users.markEmailVerified(id, email)).to.equal(true)
  }

  async function forget(interaction: string, { searchParams }: URL): Promise<void> {
    const { provider } = h
    const found = await provider.Interaction.find(interaction)
    expect(found).to.not.equal(undefined)
    await found?.destroy()
    const pushed = searchParams.get('request_uri')?.split(':').at(-1) ?? ''
    await (await provider.PushedAuthorizationRequest.find(pushed))?.destroy()
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
    }).timeout(120_000)
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

function discover(issuer: string, isConfidential: boolean): Promise<client.Configuration> {
  const [metadata, auth] = isConfidential
    ? ([CONFIDENTIAL, client.ClientSecretBasic(CONFIDENTIAL.client_secret)] as const)
    : ([PUBLIC, client.None()] as const)
  return client.discovery(new URL(issuer), metadata.client_id, undefined, auth, {
    execute: [client.allowInsecureRequests],
  })
}

/** A host whose logins all reach one level, as it is told by the form of the tests. */
function hostOfOneLevel(h: () => Harness): Host {
  return ({ login, ...parts }) =>
    koaHost({
      ...parts,
      async login(req, res) {
        if (req.method !== 'POST') return login(req, res)
        const startedAt = parts.flows.loginStarted()
        let body = ''
        for await (const chunk of req) body += String(chunk)
        const form = Object.fromEntries(new URLSearchParams(body))
        const account = await h().users.findByUsername(form['username'] ?? '')
        if (account) {
          return parts.flows.finishLogin(req, res, { account, startedAt, acr: ACR, amr: ['pwd'] })
        }
        Reflect.set(req, 'body', form)
        await login(req, res)
      },
    })
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
