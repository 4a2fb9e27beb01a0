import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { Auth } from '@auth/core'
import express from 'express'
import { auth } from 'express-openid-connect'
import session from 'express-session'
import type { JWTPayload } from 'jose'
import { Passport } from 'passport'
import { type Profile, Strategy, type VerifyCallback } from 'passport-openidconnect'
import { type AuthorizationRequest, createRelyingParty } from '../support/relying-party.ts'
import { logoutTokens } from './logout-clients.ts'

declare module 'express-session' {
  interface SessionData {
    asked: AuthorizationRequest
    sub: string
    sid: unknown
  }
}

/** Where those that take part in OpenID Connect Back-Channel Logout 1.0 take their logout tokens. */
export const LOGOUT_PATH = '/backchannel-logout'

/** A client as the provider knows it. */
export interface Registered {
  issuer: string
  port: number
  baseUrl: string
  redirectUri: string
  clientId: string
  clientSecret: string
}

function withSession({ clientId: name, clientSecret: secret }: Registered, store?: session.Store) {
  const app = express()
  app.use(
    session({ name, secret, resave: false, saveUninitialized: false, ...(store && { store }) }),
  )
  return app
}

export async function openidClient(registered: Registered): Promise<RequestListener> {
  const party = await createRelyingParty(registered.issuer, registered)
  const sessions = new session.MemoryStore()
  const app = withSession(registered, sessions)
  const accept = logoutTokens(registered, party.config.serverMetadata().jwks_uri ?? '')
  app.post(LOGOUT_PATH, express.urlencoded(), (req, res) => {
    res.set('cache-control', 'no-store')
    accept(String(Reflect.get(Object(req.body), 'logout_token')))
      .then((token) => endSessions(sessions, token))
      .then(() => res.status(204).end())
      .catch((error: unknown) => res.status(400).json({ error: String(error) }))
  })
  app.get('/', (req, res, next) => {
    if (req.session.sub !== undefined) res.send(signedIn(req.session.sub))
    else party.begin().then((asked) => res.redirect((req.session.asked = asked).url.href), next)
  })
  app.get('/callback', (req, res, next) => {
    const { asked } = req.session
    if (!asked) throw new Error('no sign-in was begun in this browser')
    party
      .exchange(asked, registered.baseUrl + req.url)
      .then((tokens) => {
        const claims = tokens.claims()
        Object.assign(req.session, { sub: claims?.sub ?? '', sid: claims?.['sid'] })
        res.redirect('/')
      })
      .catch(next)
  })
  return app
}

async function endSessions(store: session.MemoryStore, { sub, sid }: JWTPayload): Promise<void> {
  const all = await new Promise<Record<string, session.SessionData>>((resolve, reject) => {
    store.all((error, found) => (found ? resolve(Object(found)) : reject(error)))
  })
  for (const [id, kept] of Object.entries(all)) {
    if (sid === undefined ? kept.sub === sub : kept.sid === sid) store.destroy(id)
  }
}

export function passportClient(registered: Registered): RequestListener {
  const { issuer, clientId: clientID, clientSecret, redirectUri: callbackURL } = registered
  const passport = new Passport()
  const endpoints = {
    authorizationURL: `${issuer}/auth`,
    tokenURL: `${issuer}/token`,
    userInfoURL: `${issuer}/me`,
  }
  passport.use(
    new Strategy(
      { issuer, ...endpoints, clientID, clientSecret, callbackURL, scope: 'email' },
      (_issuer: string, { id }: Profile, done: VerifyCallback) => done(null, { id }),
    ),
  )
  passport.serializeUser((user, done) => done(null, user))
  passport.deserializeUser((user: Express.User, done) => done(null, user))
  const app = withSession(registered)
  app.use(passport.session())
  app.get('/callback', passport.authenticate('openidconnect', { successRedirect: '/' }))
  app.get('/', (req, res, next) => {
    if (req.user) res.send(signedIn(Reflect.get(req.user, 'id')))
    else passport.authenticate('openidconnect')(req, res, next)
  })
  return app
}

export function expressClient({
  issuer,
  baseUrl,
  clientId,
  clientSecret,
}: Registered): RequestListener {
  const app = express()
  const authorizationParams = { response_type: 'code', scope: 'openid email' }
  const registered = { issuerBaseURL: issuer, clientID: clientId, clientSecret }
  app.use(
    auth({
      ...registered,
      baseURL: baseUrl,
      secret: clientSecret,
      authorizationParams,
      session: { name: clientId },
      // As its documentation has it: only what is ended is stored.
      backchannelLogout: { store: new session.MemoryStore() as never },
    }),
  )
  app.get('/', (req, res) => void res.send(signedIn(req.oidc.user?.['sub'])))
  return app
}

export function authJsClient({
  issuer,
  baseUrl,
  clientId,
  clientSecret,
}: Registered): RequestListener {
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
      if (typeof name !== 'string') return res.writeHead(302, { location: '/auth/signin' }).end()
      return res.setHeader('content-type', 'text/html').end(signedIn(name))
    }
    if (!url.pathname.startsWith('/auth/')) return res.writeHead(404).end()
    const { method = 'GET' } = req
    const body = method === 'POST' ? { body: await text(req) } : {}
    const answered = await answer(new Request(url, { method, headers, ...body }))
    return res.writeHead(answered.status, [...answered.headers].flat()).end(await answered.text())
  }
  return (req, res) => void respond(req, res)
}

/** A page with scripts and no server. */
export function pageClient({ issuer, clientId, redirectUri }: Registered): RequestListener {
  const app = express()
  const library = import.meta.resolve('oidc-client-ts')
  const build = fileURLToPath(new URL('../browser/oidc-client-ts.min.js', library))
  app.get('/oidc-client-ts.js', (_req, res) => res.sendFile(build))
  const scope = 'openid email'
  const options = { authority: issuer, client_id: clientId, redirect_uri: redirectUri, scope }
  app.use((_req, res) => {
    res.send(`<main data-page="client"></main><script src="/oidc-client-ts.js"></script><script>
      const main = document.querySelector('main')
      const show = (mode, text) => Object.assign(main, { textContent: text }).dataset.mode = mode
      const manager = new oidc.UserManager(${JSON.stringify(options)})
      async function open() {
        if (location.pathname === '/callback') {
          await manager.signinCallback()
          return location.replace('/')
        }
        const user = await manager.getUser()
        return user ? show('signed_in', user.profile.sub) : manager.signinRedirect()
      }
      open().catch(({ message }) => show('error', message))
    </script>`)
  })
  return app
}

function signedIn(sub: unknown): string {
  return `<main data-page="client" data-mode="signed_in">${String(sub)}</main>`
}
