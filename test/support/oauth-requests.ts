/**
 * What browsers and clients ask of a harness, each answered in a word or two: what it led to.
 *
 * @module
 */
import { expect } from 'chai'
import type { AdapterFactory, ClientMetadata } from 'oidc-provider'
import type { User } from '../../src/index.ts'
import { CLIENT, CONFIDENTIAL, PASSWORD, type Harness } from './harness.ts'
import type { Person } from './person.ts'
import type { AuthorizationRequest } from './relying-party.ts'
import { createUserAgent, type Answer, type UserAgent } from './user-agent.ts'

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

/** Asks for a refresh token that outlives the session, and so for consent. */
export const OFFLINE = { scope: 'openid email offline_access', prompt: 'consent' }

export const DEVICE_CLIENT: ClientMetadata = {
  client_id: 'tv',
  redirect_uris: [],
  response_types: [],
  grant_types: [DEVICE_GRANT],
  token_endpoint_auth_method: 'none',
}

export const CLIENTS: ClientMetadata[] = [CLIENT, CONFIDENTIAL, DEVICE_CLIENT]

/** Where an authorization request led: `code`, an error at the client, a page, or a status. */
export function outcomeOf({ location, page, mode, status }: Answer): string {
  if (location === undefined) return page === undefined ? String(status) : `${page} ${mode}`
  const { searchParams } = new URL(location)
  return searchParams.get('error') ?? (searchParams.has('code') ? 'code' : location)
}

/** `tokens`, or the error. */
export async function redeem(...code: Parameters<typeof redeemed>): Promise<string> {
  return (await redeemed(...code)).error ?? 'tokens'
}

export function redeemed(
  h: Harness,
  request: AuthorizationRequest,
  location = '',
  clientId: string = CLIENT.client_id,
): Promise<TokenAnswer> {
  return tokenRequest(h, {
    grant_type: 'authorization_code',
    client_id: clientId,
    code: new URL(location).searchParams.get('code') ?? '',
    redirect_uri: request.redirectUri,
    code_verifier: request.codeVerifier,
  })
}

export async function refresh(h: Harness, token = ''): Promise<string> {
  const { client_id } = CLIENT
  const form = { grant_type: 'refresh_token', client_id, refresh_token: token }
  return (await tokenRequest(h, form)).error ?? 'tokens'
}

export async function pollDevice(...device: Parameters<typeof polled>): Promise<string> {
  return (await polled(...device)).error ?? 'tokens'
}

export function polled(
  h: Harness,
  { device_code }: DeviceRequest,
  { client_id } = DEVICE_CLIENT,
): Promise<TokenAnswer> {
  return tokenRequest(h, { grant_type: DEVICE_GRANT, client_id, device_code })
}

async function tokenRequest(h: Harness, form: Record<string, string>): Promise<TokenAnswer> {
  return json(await createUserAgent().post(`${h.oauthUrl}/token`, form))
}

export async function isActive(h: Harness, token = '', client: ClientMetadata = CLIENT) {
  const answer = await createUserAgent().post(
    `${h.oauthUrl}/token/introspection`,
    { token, ...(client.client_secret === undefined && { client_id: client.client_id }) },
    basic(client),
  )
  return (await json(answer)).active
}

export async function userinfo(h: Harness, token = ''): Promise<number> {
  const headers = { authorization: `Bearer ${token}` }
  return (await createUserAgent().get(`${h.oauthUrl}/me`, headers)).status
}

/** An access token of a client that acts for nobody. */
export async function machineToken(h: Harness): Promise<string> {
  const form = { grant_type: 'client_credentials' }
  const answer = await createUserAgent().post(`${h.oauthUrl}/token`, form, basic(CONFIDENTIAL))
  return (await json(answer)).access_token ?? ''
}

/** Goes as far as the consent page; with a login, where there is no session. */
export async function parkAtConsent(h: Harness, agent: UserAgent, user: User) {
  const request = await h.party.begin(OFFLINE)
  let page = await h.follow(agent, await agent.get(request.url))
  if (page.mode === 'login') page = await h.follow(agent, await postLogin(h, agent, user))
  expect([page.page, page.mode]).to.deep.equal(['login', 'consent'])
  return request
}

export async function consent(h: Harness, agent: UserAgent): Promise<Answer> {
  return h.follow(agent, await agent.post(`${h.oauthUrl}/login`, { consent: 'yes' }))
}

/** Tokens that outlive the session. */
export async function offlineTokens(h: Harness, agent: UserAgent, user: User) {
  const request = await parkAtConsent(h, agent, user)
  const { location = '' } = await consent(h, agent)
  const tokens = await h.party.exchange(request, location)
  expect(tokens.refresh_token).to.be.a('string')
  return tokens
}

/** The person in a new browser where they are signed in, with tokens that outlive the session; a new person by default. */
export async function signedIn(h: Harness, user?: Person) {
  const person = (user ?? (await h.addVerified())).in()
  return Object.assign(person, { tokens: await offlineTokens(h, person.agent, person) })
}

type SignedIn = Awaited<ReturnType<typeof signedIn>>

export async function expectAlive(h: Harness, { id, account, tokens }: SignedIn) {
  expect(await account()).to.equal(id)
  expect(await userinfo(h, tokens.access_token)).to.equal(200)
  expect(await refresh(h, tokens.refresh_token)).to.equal('tokens')
}

export async function expectEnded(h: Harness, { account, tokens }: SignedIn) {
  expect(await account()).to.equal(undefined)
  expect(await userinfo(h, tokens.access_token)).to.equal(401)
  expect(await isActive(h, tokens.access_token)).to.equal(false)
  expect(await refresh(h, tokens.refresh_token)).to.equal('invalid_grant')
}

export function postLogin(h: Harness, agent: UserAgent, user: User, password = PASSWORD) {
  return agent.post(`${h.oauthUrl}/login`, { username: user.username, password })
}

export interface DeviceRequest {
  device_code: string
  verification_uri_complete: string
}

export async function beginDevice(h: Harness, client = DEVICE_CLIENT): Promise<DeviceRequest> {
  const form = { client_id: client.client_id, scope: 'openid' }
  const answer = await createUserAgent().post(`${h.oauthUrl}/device/auth`, form)
  return JSON.parse(answer.text) as DeviceRequest
}

/** Types the code and confirms it; answers the login page, or with a session the last page. */
export async function confirmDevice(h: Harness, agent: UserAgent, device: DeviceRequest) {
  const form = await agent.get(device.verification_uri_complete)
  const question = await agent.post(`${h.oauthUrl}/device`, form.hidden)
  return h.follow(agent, await agent.post(`${h.oauthUrl}/device`, question.hidden))
}

/** An adapter with the seven methods that oidc-provider asks for, and no more. */
export function withoutAccounts(adapter: AdapterFactory): AdapterFactory {
  return (model) => {
    const inner = adapter(model)
    return {
      upsert: inner.upsert,
      find: inner.find,
      findByUid: inner.findByUid,
      findByUserCode: inner.findByUserCode,
      consume: inner.consume,
      destroy: inner.destroy,
      revokeByGrantId: inner.revokeByGrantId,
    }
  }
}

interface TokenAnswer {
  error?: string
  active?: boolean
  access_token?: string
  id_token?: string
}

async function json({ text }: Answer): Promise<TokenAnswer> {
  return JSON.parse(text) as TokenAnswer
}

function basic({ client_id, client_secret }: ClientMetadata): Record<string, string> {
  if (client_secret === undefined) return {}
  const credentials = [client_id ?? '', client_secret].map(encodeURIComponent).join(':')
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }
}
