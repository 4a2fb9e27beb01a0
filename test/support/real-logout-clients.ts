/**
 * Clients that others wrote, with back-channel logout, for a browser without scripts. Their logout tokens come in at a door of its own,
 * which keeps them, can be shut, and can hold them up.
 *
 * @module
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { decodeJwt, type JWTPayload } from 'jose'
import type { ClientMetadata } from 'oidc-provider'
import { freePort } from './free-port.ts'
import { expressClient, LOGOUT_PATH, openidClient } from './node-clients.ts'
import { served } from './real-clients.ts'
import { followWithin } from './relying-party.ts'
import type { Answer, UserAgent } from './user-agent.ts'

export const LOGOUT_CLIENTS = {
  'openid-client': openidClient,
  'express-openid-connect': expressClient,
}

export type LogoutClientKind = keyof typeof LOGOUT_CLIENTS

/** A logout token that came to the door. */
export interface ToldToken {
  token: string
  claims: JWTPayload
  /** What the client answered. `undefined`: it has not. */
  status: number | undefined
}

/** What is done with each token on its way. */
export interface Door {
  /** Before the client sees it. */
  before?: ((entry: ToldToken) => unknown) | undefined
  /** Once the client has answered, and the provider does not know yet. */
  after?: ((entry: ToldToken) => unknown) | undefined
  /** Answered in place of the client, which sees nothing. */
  answers?: number | undefined
}

export interface LogoutClient {
  metadata: ClientMetadata & { client_id: string }
  baseUrl: string
  /** Each token that came, also those that were refused. */
  told: ToldToken[]
  door: Door
  /** Once the provider is there. */
  start(issuer: string): Promise<void>
  /** Nothing listens where its tokens go; its pages are still there. */
  shut(): Promise<void>
  open(): Promise<void>
  /** Brings a logout token to the client, as the provider does. */
  bring(token: string): Promise<number>
  stop(): Promise<void>
}

/** @param more - of its metadata; with another `client_id` there are two of a kind. */
export async function logoutClient(
  kind: LogoutClientKind,
  { client_id: clientId = kind, ...more }: Partial<ClientMetadata> = {},
): Promise<LogoutClient> {
  const [port, doorPort] = [await freePort(), await freePort()]
  const baseUrl = `http://127.0.0.1:${port}`
  const redirectUri = `${baseUrl}/callback`
  const clientSecret = 'a-secret-of-the-tests-long-enough'
  const metadata = {
    client_id: clientId,
    client_secret: clientSecret,
    redirect_uris: [redirectUri],
    backchannel_logout_uri: `http://127.0.0.1:${doorPort}/told`,
    ...more,
  }
  const told: ToldToken[] = []
  const door: Door = {}
  const server = createServer((req, res) => void take(req, res).catch(() => res.destroy()))
  let stopClient: () => unknown = () => {}

  async function bring(token: string): Promise<number> {
    const body = new URLSearchParams({ logout_token: token })
    return (await fetch(baseUrl + LOGOUT_PATH, { method: 'POST', body })).status
  }

  async function take(req: IncomingMessage, res: ServerResponse) {
    const token = new URLSearchParams(await text(req)).get('logout_token') ?? ''
    const entry: ToldToken = { token, claims: decodeJwt(token), status: undefined }
    told.push(entry)
    await door.before?.(entry)
    entry.status = door.answers ?? (await bring(token))
    await door.after?.(entry)
    res.writeHead(entry.status).end()
  }

  const open = () => new Promise<void>((resolve) => server.listen(doorPort, '127.0.0.1', resolve))

  async function shut() {
    const closed = new Promise((resolve) => server.close(resolve))
    server.closeAllConnections()
    await closed
  }

  return {
    metadata,
    baseUrl,
    told,
    door,
    bring,
    open,
    shut,
    async start(issuer) {
      const registered = { issuer, port, baseUrl, redirectUri, clientId, clientSecret }
      stopClient = await served(LOGOUT_CLIENTS[kind])(registered)
      await open()
    },
    async stop() {
      await shut()
      await stopClient()
    },
  }
}

/** From its front page to its front page, by the login page where the provider asks for it. Answers the `sub` that it was told. */
export async function signInAt(
  { baseUrl }: LogoutClient,
  agent: UserAgent,
  credentials: { username: string; password: string },
): Promise<string> {
  const everywhere = (answer: Answer) => followWithin(agent, 'http://', answer)
  let page = await everywhere(await agent.get(baseUrl))
  if (page.page === 'login') {
    const { origin, pathname } = new URL(page.url)
    page = await everywhere(await agent.post(origin + pathname, { ...page.hidden, ...credentials }))
  }
  const sub = subOf(page)
  if (sub === undefined) throw new Error(`not signed in: ${page.status} ${page.url} ${page.text}`)
  return sub
}

/** The `sub` that the client has a session of, in this browser. `undefined`: it would lead to the provider. */
export async function signedInAt({ baseUrl }: LogoutClient, agent: UserAgent) {
  return subOf(await agent.get(baseUrl))
}

function subOf({ mode, text: html }: Answer): string | undefined {
  return mode === 'signed_in' ? />([^<]*)</.exec(html)?.[1] : undefined
}
