import { expect } from 'chai'
import { exportJWK, generateKeyPair } from 'jose'
import type { Adapter, ClientMetadata, Configuration } from 'oidc-provider'
import { buildAuthorizationUrlWithJAR, buildAuthorizationUrlWithPAR } from 'openid-client'
import { expectPage, type Answer } from './user-agent.ts'
import { CLIENT, CONFIDENTIAL, PASSWORD, type Harness } from './harness.ts'
import {
  createRelyingParty,
  type AuthorizationRequest,
  type RelyingParty,
} from './relying-party.ts'
import type { Person } from './person.ts'

/** Clients that ask in other ways than the client of the harness, and what they ask. */

const { privateKey, publicKey } = await generateKeyPair('ES256')

export const PAR_ONLY = {
  ...CLIENT,
  client_id: 'par-only',
  redirect_uris: ['https://par.example/cb'],
  require_pushed_authorization_requests: true,
} as const satisfies ClientMetadata

export const JAR_ONLY = {
  ...CLIENT,
  client_id: 'jar-only',
  redirect_uris: ['https://jar.example/cb'],
  require_signed_request_object: true,
  request_object_signing_alg: 'ES256',
  jwks: { keys: [await exportJWK(publicKey)] },
} as const satisfies ClientMetadata

/** What a link carries for the clients of the harness (4.7). */
export const APP = {
  client_id: CLIENT.client_id,
  redirect_uri: CLIENT.redirect_uris[0],
  scope: 'openid',
} as const
export const SERVER = {
  client_id: CONFIDENTIAL.client_id,
  redirect_uri: CONFIDENTIAL.redirect_uris[0],
  scope: 'openid',
} as const

/** What a provider needs for them. */
export const THEIR_FEATURES: Configuration['features'] = {
  devInteractions: { enabled: false },
  pushedAuthorizationRequests: { enabled: true },
  requestObjects: { enabled: true },
  deviceFlow: { enabled: true },
}

export const DYNAMIC_URI = 'https://dynamic.example/cb'

export function partyOf({ oauthUrl }: Pick<Harness, 'oauthUrl'>, client: ClientMetadata) {
  const { client_id: clientId, redirect_uris: [redirectUri = ''] = [], client_secret } = client
  const secret = client_secret !== undefined && { clientSecret: client_secret }
  return createRelyingParty(oauthUrl, { clientId, redirectUri, ...secret })
}

const parametersOf = ({ url }: AuthorizationRequest) => Object.fromEntries(url.searchParams)

/** How a request is sent: the address for the browser. */
export type Sending = (request: AuthorizationRequest, party: RelyingParty) => Promise<URL>

export const byPushing: Sending = (request, { config }) =>
  buildAuthorizationUrlWithPAR(config, parametersOf(request))

export const bySigning: Sending = (request, { config }) =>
  buildAuthorizationUrlWithJAR(config, parametersOf(request), privateKey)

export const bySigningAndPushing: Sending = async (request, party) =>
  buildAuthorizationUrlWithPAR(party.config, (await bySigning(request, party)).searchParams)

/** A blocked login by a pushed request, and the address that the browser was sent to. */
export async function pushedLogin(h: Harness): Promise<{ login: Person; url: URL }> {
  const party = await partyOf(h, PAR_ONLY)
  let url = new URL(h.oauthUrl)
  const login = await h.blockedLogin({
    party,
    send: async (request) => (url = await byPushing(request, party)),
  })
  return { login, url }
}

/** A blocked login by a signed request. */
export async function signedLogin(h: Harness): Promise<Person> {
  const party = await partyOf(h, JAR_ONLY)
  return h.blockedLogin({ party, send: (request) => bySigning(request, party) })
}

let registered = 0

/** A blocked login of a client in the adapter, as dynamic registration leaves it, and how that client changes. */
export async function dynamicLogin(
  h: Harness,
  options: { extra?: Record<string, string>; send?: Sending | undefined } = {},
) {
  const { extra = {}, send = async ({ url }) => url } = options
  registered += 1
  const clientId = `dynamic-${registered}`
  const metadata: ClientMetadata = {
    ...CLIENT,
    client_id: clientId,
    redirect_uris: [DYNAMIC_URI],
    jwks: JAR_ONLY.jwks,
  }
  const { adapter } = h.provider.Client as unknown as { adapter: Adapter }
  const change = (changes: Partial<ClientMetadata> = {}) =>
    adapter.upsert(clientId, { ...metadata, ...changes }, 3600)
  await change()
  const party = await createRelyingParty(h.oauthUrl, { clientId, redirectUri: DYNAMIC_URI })
  const login = await h.blockedLogin({ party, extra, send: (request) => send(request, party) })
  return { login, change, remove: () => adapter.destroy(clientId) }
}

export type DynamicClient = Awaited<ReturnType<typeof dynamicLogin>>

/** What a client has that acts for nobody, and may ask for no code. */
export const MACHINE = {
  grant_types: ['client_credentials'],
  response_types: [],
  client_secret: 'a secret',
  token_endpoint_auth_method: 'client_secret_basic',
} satisfies Partial<ClientMetadata>

/** What the provider keeps of a request that was pushed, by the address that the browser was sent to. */
export const pushedRequest = (h: Harness, { searchParams }: URL) =>
  h.provider.PushedAuthorizationRequest.find(
    searchParams.get('request_uri')?.split(':').at(-1) ?? '',
  )

export async function forgetInteraction(h: Harness, { interaction }: Person): Promise<void> {
  const found = await h.provider.Interaction.find(interaction)
  expect(found).to.not.equal(undefined)
  await found?.destroy()
}

/** The answer leads to the page of the provider in this mode, and what is posted there to the code. */
async function expectAsksThenCode(
  h: Harness,
  { id, request, party, agent }: Person,
  answer: Answer,
  mode: string,
  form: Record<string, string>,
) {
  expect(answer.status, answer.text).to.equal(302)
  expect(answer.location).to.match(/\/login\?interaction=/)
  const page = await h.follow(agent, answer)
  expectPage(page, 200, 'login', mode)
  const { location = '' } = await h.follow(agent, await agent.post(page.url, form))
  expect(location.split('?')[0]).to.equal(request.redirectUri)
  expect(new URL(location).searchParams.get('state')).to.equal(request.state)
  expect((await party.exchange(request, location)).claims()?.sub).to.equal(id)
}

export const expectConsentThenCode = (h: Harness, login: Person, answer: Answer) =>
  expectAsksThenCode(h, login, answer, 'consent', { consent: 'yes' })

export const expectPasswordThenCode = (h: Harness, login: Person, answer: Answer) => {
  const { username } = login
  return expectAsksThenCode(h, login, answer, 'login', { username, password: PASSWORD })
}
