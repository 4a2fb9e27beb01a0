import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { isDeepStrictEqual } from 'node:util'
import { expect } from 'chai'
import type { ClientLogout } from '../../src/store/index.ts'
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose'
import type { ClientMetadata, Configuration } from 'oidc-provider'
import type { User } from '../../src/index.ts'
import { partyOf } from '../support/clients.ts'
import { eventually } from '../support/eventually.ts'
import { CLIENT, type Harness, type HarnessOptions } from '../support/harness.ts'
import { postLogin } from '../support/oauth-requests.ts'
import { serve } from '../support/serve.ts'
import { moveTime } from '../support/time.ts'
import { createUserAgent, type UserAgent } from '../support/user-agent.ts'

/** How a client answers a logout token. */
type Answer = (req: IncomingMessage, res: ServerResponse) => void

/** A client of its own server, which is told when an account is ended. */
export interface LogoutClient {
  metadata: ClientMetadata & { client_id: string; redirect_uris: readonly [string] }
  /** What was posted to it, oldest first. */
  tokens: string[]
  /** Of these it has not answered so many. */
  open: number
  answer: Answer
  close(): Promise<void>
}

export const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (_req, res) =>
    void res.writeHead(code, headers).end()

export const hang: Answer = () => {}

/** Requests to all clients. */
let open = 0

export async function startLogoutClient(
  clientId: string,
  metadata: Partial<ClientMetadata> = {},
): Promise<LogoutClient> {
  const { url, close } = await serve((req, res) => {
    const opened = (change: number) => {
      client.open += change
      open += change
    }
    opened(1)
    res.on('close', () => opened(-1))
    void (async () => {
      const form = new URLSearchParams(await text(req))
      expect([req.method, ...form.keys()]).to.deep.equal(['POST', 'logout_token'])
      expect(req.headers['content-type']).to.equal('application/x-www-form-urlencoded')
      client.tokens.push(form.get('logout_token') ?? '')
      client.answer(req, res)
    })()
  })
  const client: LogoutClient = {
    metadata: {
      ...CLIENT,
      backchannel_logout_uri: `${url}/logged-out`,
      ...metadata,
      client_id: clientId,
      redirect_uris: [`https://${clientId}.example/cb`],
    },
    tokens: [],
    open: 0,
    answer: status(200),
    close,
  }
  return client
}

const features: Configuration['features'] = {
  devInteractions: { enabled: false },
  backchannelLogout: { enabled: true },
  introspection: { enabled: true },
}

/** A harness whose provider tells these clients. */
export function telling(
  clients: { metadata: ClientMetadata }[],
  options: HarnessOptions = {},
): HarnessOptions {
  return {
    clients: [CLIENT, ...clients.map(({ metadata }) => metadata)],
    flows: { clientLogout: { allowPrivateNetworks: true } },
    provider: {
      features,
      subjectTypes: ['public', 'pairwise'],
      pairwiseIdentifier: (_ctx, accountId, { clientId }) => `${accountId} at ${clientId}`,
    },
    ...options,
  }
}

/** Signs in at a client, with the session that this browser has, if any. */
export async function signInAt(
  h: Harness,
  { metadata }: Pick<LogoutClient, 'metadata'>,
  user: User,
  agent: UserAgent = createUserAgent(),
  asked: Record<string, string> = {},
) {
  const party = await partyOf(h, metadata)
  const request = await party.begin(asked)
  let page = await h.follow(agent, await agent.get(request.url))
  if (page.mode === 'login') page = await h.follow(agent, await postLogin(h, agent, user))
  if (page.mode === 'consent')
    page = await h.follow(agent, await agent.post(`${h.oauthUrl}/login`, { consent: 'yes' }))
  const tokens = await party.exchange(request, page.location ?? '')
  const claims: JWTPayload = { ...tokens.claims() }
  return { agent, tokens, claims }
}

const LOGOUT_EVENT = 'http://schemas.openid.net/event/backchannel-logout'

/** Answers what a logout token says, once for each (2.6 of the standard); throws what is wrong with it. */
export function logoutTokens(
  { issuer, clientId }: { issuer: string; clientId: string },
  jwksUri: string,
) {
  const keys = createRemoteJWKSet(new URL(jwksUri))
  const seen = new Set<string>()
  return async (token: string): Promise<JWTPayload> => {
    const { payload } = await jwtVerify(token, keys, {
      issuer,
      audience: clientId,
      typ: 'logout+jwt',
      maxTokenAge: '2 minutes',
      requiredClaims: ['iat', 'exp', 'jti', 'events'],
    })
    const { jti = '', sub, sid, events, nonce } = payload
    if (!isDeepStrictEqual(events, { [LOGOUT_EVENT]: {} })) throw new Error('no logout event')
    if (nonce !== undefined) throw new Error('a nonce')
    if (sub === undefined && sid === undefined) throw new Error('neither sub nor sid')
    if (seen.has(jti)) throw new Error('replayed')
    seen.add(jti)
    return payload
  }
}

/** As a client judges a logout token; each call is a client that has seen none. */
export const verified = (
  h: Harness,
  { metadata: { client_id: clientId } }: LogoutClient,
  token: string,
): Promise<JWTPayload> =>
  logoutTokens({ issuer: h.oauthUrl, clientId }, `${h.oauthUrl}/jwks`)(token)

export const logoutsOf = (h: Harness, { id }: User): Promise<ClientLogout[]> =>
  h.store.clientLogouts.find({ accountId: id })

/** Waits until nobody will try again to tell a client of this account; attempts that wait are due at once. */
export async function allTold(h: Harness, user: User): Promise<ClientLogout[]> {
  return eventually(
    'all is told, or given up',
    async () => {
      const logouts = await logoutsOf(h, user)
      if (logouts.length > 0 && logouts.every(({ state }) => state !== 'waiting')) return logouts
      // Not out of an attempt that is under way.
      if (open === 0) await moveTime(1_000)
      return undefined
    },
    20_000,
  )
}
