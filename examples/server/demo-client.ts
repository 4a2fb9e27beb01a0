/**
 * A relying party, as small as it can be: authorization code flow with PKCE, state and nonce.
 *
 * State, nonce and code verifier of a sign-in all come from one secret in a cookie. So any number of tabs can sign in, and
 * any process can finish what another one began. A state from another browser is recognized as such.
 *
 * @module
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { request, type RequestOptions } from 'node:http'
import { json } from 'node:stream/consumers'
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet, type JWTPayload } from 'jose'
import type { Context } from 'koa'
import { html, inEnglish, type Html } from './html.ts'
import type { Paths, ShowPage } from './page.ts'
import type { Route } from './requests.ts'
import type { Place } from './serve.ts'

const CLIENT_ID = 'demo'
const COOKIE = 'demo_browser'
/** Of who listens everywhere. */
const LOOPBACK = new Map([
  ['0.0.0.0', '127.0.0.1'],
  ['::', '::1'],
])
const COOKIE_LIFETIME_MS = 30 * 24 * 3_600_000

export interface DemoClientParts {
  baseUrl: string
  issuer: string
  /** Where this process listens, and reaches the provider past any proxy. */
  place: Place
  show: ShowPage
  paths: Paths
}

export function demoClient({ baseUrl, issuer, place, show, paths }: DemoClientParts) {
  const redirectUri = `${baseUrl}/demo/callback`
  const host = LOOPBACK.get(place.host) ?? place.host

  /** Of the provider. With `fetch` nobody can say which host is meant. */
  async function ask<Answer>(
    path: string,
    options: RequestOptions = {},
    form = '',
  ): Promise<Answer> {
    const headers = { host: new URL(baseUrl).host, connection: 'close', ...options.headers }
    const asked = request({ ...place, host, ...options, path: `${paths.oauth}${path}`, headers })
    asked.end(form)
    const [answer] = await once(asked, 'response')
    return (await json(answer)) as Answer
  }

  function start(ctx: Context) {
    const secret =
      ctx.cookies.get(COOKIE, { signed: true }) ?? randomBytes(32).toString('base64url')
    ctx.cookies.set(COOKIE, secret, {
      signed: true,
      httpOnly: true,
      sameSite: 'lax',
      path: `${paths.base}/demo`,
      maxAge: COOKIE_LIFETIME_MS,
    })
    const id = randomBytes(16).toString('base64url')
    const verifier = derived(secret, 'verifier', id)
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: CLIENT_ID,
      redirect_uri: redirectUri,
      scope: 'openid profile email',
      state: `${id}.${derived(secret, 'state', id)}`,
      nonce: derived(secret, 'nonce', id),
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
    })
    if (ctx.query['prompt'] === 'login') query.set('prompt', 'login')
    ctx.redirect(`${issuer}/auth?${query}`)
  }

  async function callback(ctx: Context) {
    const { code, state, error, error_description, iss } = ctx.query
    const secret = ctx.cookies.get(COOKIE, { signed: true })
    const id = typeof state === 'string' ? idOf(secret, state) : undefined
    if (secret === undefined || id === undefined) return showOtherBrowser(ctx)
    if (typeof code !== 'string' || iss !== issuer) {
      return showRefused(ctx, String(error_description ?? error ?? 'no code came back'))
    }
    const tokens = await redeem(code, derived(secret, 'verifier', id))
    if (!tokens) return showRefused(ctx, 'the code was used already, or is too old')
    const keys = createLocalJWKSet(await ask<JSONWebKeySet>('/jwks'))
    const { payload } = await jwtVerify(tokens.idToken, keys, { issuer, audience: CLIENT_ID })
    if (payload['nonce'] !== derived(secret, 'nonce', id)) {
      return showRefused(ctx, 'the nonce is of another sign-in')
    }
    showSignedIn(ctx, payload, await userinfo(tokens.accessToken))
  }

  async function redeem(code: string, verifier: string) {
    const body = new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: CLIENT_ID,
      redirect_uri: redirectUri,
      code,
      code_verifier: verifier,
    })
    const headers = { 'content-type': 'application/x-www-form-urlencoded' }
    const { access_token, id_token } = await ask<Record<string, unknown>>(
      '/token',
      { method: 'POST', headers },
      body.toString(),
    )
    return typeof access_token === 'string' && typeof id_token === 'string'
      ? { accessToken: access_token, idToken: id_token }
      : undefined
  }

  const userinfo = (accessToken: string) =>
    ask<Record<string, unknown>>('/me', { headers: { authorization: `Bearer ${accessToken}` } })

  function showSignedIn(ctx: Context, idToken: JWTPayload, user: Record<string, unknown>) {
    const query = new URLSearchParams({
      client_id: CLIENT_ID,
      post_logout_redirect_uri: `${baseUrl}/`,
    })
    show(ctx, {
      name: 'demo',
      mode: 'signed_in',
      values: { user: String(user['preferred_username']) },
      content: ({ t }) =>
        html`<h2 lang="en">ID token</h2>
          ${claimList(idToken)}
          <h2 lang="en">User info</h2>
          ${claimList(user)}
          <p>
            <a href="${paths.oauth}/session/end?${query.toString()}">${t('logout.submit')}</a>
          </p>`,
    })
  }

  function showOtherBrowser(ctx: Context) {
    show(ctx, {
      name: 'demo',
      mode: 'other_browser',
      content: ({ t }) => startLink(t('demo.other_browser.submit')),
    })
  }

  function showRefused(ctx: Context, reason: string) {
    ctx.status = 400
    show(ctx, {
      name: 'demo',
      mode: 'refused',
      content: ({ t }) => html`${inEnglish(reason)} ${startLink(t('demo.refused.submit'))}`,
    })
  }

  const startLink = (text: string) =>
    html`<p><a class="button" href="${paths.base}/demo/start">${text}</a></p>`

  return {
    [`${paths.base}/demo/start`]: { get: start },
    [`${paths.base}/demo/callback`]: { get: callback },
  } satisfies Record<string, Route>
}

function derived(secret: string, purpose: string, id: string): string {
  return createHmac('sha256', secret).update(`${purpose} ${id}`).digest('base64url')
}

/** `undefined`: this browser never sent that state. */
function idOf(secret: string | undefined, state: string): string | undefined {
  const [id = '', mark = ''] = state.split('.')
  if (secret === undefined) return undefined
  const [actual, expected] = [Buffer.from(mark), Buffer.from(derived(secret, 'state', id))]
  return actual.length === expected.length && timingSafeEqual(actual, expected) ? id : undefined
}

function claimList(claims: Record<string, unknown>): Html {
  const entries = Object.entries(claims)
  return html`<dl dir="ltr">
    ${entries.map(
      ([name, value]) =>
        html`<dt>${name}</dt>
          <dd>${typeof value === 'string' ? value : JSON.stringify(value)}</dd> `,
    )}
  </dl>`
}
