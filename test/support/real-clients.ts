/**
 * Clients that others wrote, as servers of their own, with PKCE, state and nonce as they make them. Whoever is signed in reads his
 * `sub` on the front page; whoever is not is asked to.
 *
 * @module
 */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { Auth } from '@auth/core'
import express from 'express'
import { auth } from 'express-openid-connect'
import type { ClientMetadata } from 'oidc-provider'

export interface RealClient {
  name: string
  baseUrl: string
  metadata: ClientMetadata & { client_id: string; redirect_uris: [string] }
  /** Once the provider is there. */
  trust(issuer: string): void
  close(): void
}

interface Registered {
  issuer: string
  baseUrl: string
  clientId: string
  clientSecret: string
}

type Make = (registered: Registered) => RequestListener

const CLIENTS: [name: string, callback: string, make: Make][] = [
  ['express-openid-connect', '/callback', expressClient],
  ['Auth.js', '/auth/callback/idp', authJsClient],
]

export function startRealClients(): Promise<RealClient[]> {
  return Promise.all(CLIENTS.map(startClient))
}

async function startClient([name, callback, make]: (typeof CLIENTS)[number]): Promise<RealClient> {
  let listener: RequestListener = (_req, res) => res.writeHead(503).end()
  const server = createServer((req, res) => listener(req, res))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const [clientId, clientSecret] = [name, 'a-secret-of-the-tests-long-enough']
  return {
    name,
    baseUrl,
    metadata: {
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: [baseUrl + callback],
    },
    trust: (issuer) => (listener = make({ issuer, baseUrl, clientId, clientSecret })),
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

function expressClient({ issuer, baseUrl, clientId, clientSecret }: Registered): RequestListener {
  const app = express()
  const authorizationParams = { response_type: 'code', scope: 'openid email' }
  const registered = { issuerBaseURL: issuer, clientID: clientId, clientSecret }
  app.use(auth({ ...registered, baseURL: baseUrl, secret: clientSecret, authorizationParams }))
  app.get('/', (req, res) => void res.send(signedIn(req.oidc.user?.['sub'])))
  return app
}

function authJsClient({ issuer, baseUrl, clientId, clientSecret }: Registered): RequestListener {
  const answer = (request: Request): Promise<Response> =>
    Auth(request, {
      basePath: '/auth',
      trustHost: true,
      secret: clientSecret,
      providers: [
        {
          id: 'idp',
          name: 'The provider',
          type: 'oidc',
          issuer,
          clientId,
          clientSecret,
          checks: ['pkce', 'state', 'nonce'],
          profile: ({ sub }: { sub: string }) => ({ id: sub, name: sub }),
        },
      ],
    })

  async function respond(req: IncomingMessage, res: ServerResponse) {
    const url = new URL(req.url ?? '', baseUrl)
    const { cookie = '', 'content-type': type = 'text/plain' } = req.headers
    const headers = { cookie, 'content-type': type }
    if (url.pathname === '/') {
      const session = await answer(new Request(`${baseUrl}/auth/session`, { headers }))
      const name: unknown = Reflect.get(Object(Object(await session.json()).user), 'name')
      if (typeof name === 'string') res.end(signedIn(name))
      else res.writeHead(302, { location: '/auth/signin' }).end()
      return
    }
    const { method = 'GET' } = req
    const body = method === 'POST' ? { body: await bodyOf(req) } : {}
    const answered = await answer(new Request(url, { method, headers, ...body }))
    res.writeHead(answered.status, [...answered.headers].flat())
    res.end(await answered.text())
  }
  return (req, res) => void respond(req, res)
}

function signedIn(sub: unknown): string {
  return `<main data-page="client" data-mode="signed_in">${String(sub)}</main>`
}

async function bodyOf(req: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of req) body += String(chunk)
  return body
}
