/**
 * Finishes an authorization request from an e-mailed link, inside the provider's own pipeline and in one response. This
 * works from any browser and long after the interaction expired, because the whole request was captured.
 *
 * Three things here are not documented by oidc-provider and are pinned by a contract test: the constructor of
 * `provider.Interaction`, that the resume cookie holds the interaction's uid, and the route names `resume` and `device_resume`.
 *
 * @module
 */
import { randomBytes } from 'node:crypto'
import type { Context, Next } from 'koa'
import type { Interaction, Provider, Session } from 'oidc-provider'
import { appendCarried } from '../ports/carried-query.ts'
import type { Clock } from '../clock.ts'
import { loginSecond, type SeenCutoffs } from '../ports/login-end.ts'
import type { CapturedRequest, CarriedParameters, LoginResult } from '../ports/index.ts'
import type { OpenLogin } from './open-login.ts'
import { rethrowFailure, wasGone } from './provider-answers.ts'
import { dropCookie, injectCookie } from './request-cookies.ts'

/** The record only has to live for the one request that makes and uses it. */
const HANDOVER_SECONDS = 60

/** A login that only the link proves. */
export interface EmailLogin {
  accountId: string
  /** In which the request with the link arrived. */
  second: number
  /** What decides which cut-offs it outlives. */
  seen: SeenCutoffs
}

export interface Resume {
  /** The live session in this browser; its `uid` stays the same while it lives. `undefined`: nobody is signed in. */
  liveSession(ctx: Context): Promise<{ accountId: string; uid: string } | undefined>
  /** Ends a live session of another account; nothing of it may reach the one to come. */
  endForeignSession(ctx: Context, accountId: string): Promise<void>
  /**
   * Signs the account in and finishes the captured request: 302 to the client, or the next page that it needs. With `byEmail` the
   * session says that, and when: this browser has shown the link alone, and no password. Where the account signed in again in this
   * browser since, the session stays of that login, and the request is finished with it. `false`: the login was ended meanwhile, nobody
   * is signed in, and the answer is the caller's to make.
   */
  captured(
    ctx: Context,
    next: Next,
    captured: CapturedRequest,
    byEmail?: EmailLogin,
  ): Promise<boolean>
  /**
   * Likewise in the window that logged in, though a link may have finished the same request in another browser before, and used
   * up the request that the client had pushed, which is good for one answer.
   */
  waiting(ctx: Context, next: Next, captured: CapturedRequest): Promise<boolean>
  /**
   * Signs the account in by its e-mail alone, then sends the carried parameters through the authorization endpoint with all
   * of its checks: what was not captured, such as PKCE, is never assumed.
   */
  carried(ctx: Context, next: Next, login: EmailLogin, carried: CarriedParameters): Promise<void>
}

interface Parts {
  provider: () => Provider
  clock: Clock
  openLogin: Pick<OpenLogin, 'forget'>
}

export function createResume(parts: Parts): Resume {
  const { provider } = parts
  return {
    async liveSession(ctx) {
      const { accountId, uid } = await provider().Session.get(ctx)
      return accountId === undefined ? undefined : { accountId, uid }
    },

    async endForeignSession(ctx, accountId) {
      const session = await provider().Session.get(ctx)
      if (session.accountId === undefined || session.accountId === accountId) return
      await session.destroy()
      dropCookie(ctx, provider().cookieName('session'))
    },

    captured: (...request) => finish(parts, ...request),

    async waiting(ctx, next, { parJti, ...request }) {
      const { PushedAuthorizationRequest } = provider()
      const pushed =
        parJti === undefined ? undefined : await PushedAuthorizationRequest.find(parJti)
      const isFinished = await finish(parts, ctx, next, request)
      // The answer stands without it: a pushed request that nobody uses up lives for a minute.
      await pushed?.consume().catch(() => {})
      return isFinished
    },

    async carried(ctx, next, { accountId, second }, carried) {
      const session = await provider().Session.get(ctx)
      session.loginAccount({ accountId, loginTs: second, amr: ['email'] })
      session.resetIdentifier()
      await session.save(HANDOVER_SECONDS)
      injectCookie(ctx, provider().cookieName('session'), session.jti)
      const query = appendCarried(new URLSearchParams({ response_type: 'code' }), carried)
      const path = provider().pathFor('authorization', { mountPath: '' })
      await reenter(parts, ctx, next, `${path}?${query.toString()}`)
    },
  }
}

async function finish(
  parts: Parts,
  ctx: Context,
  next: Next,
  captured: CapturedRequest,
  byEmail?: EmailLogin,
): Promise<boolean> {
  const { provider, clock } = parts
  const { lastSubmission: _, ...request } = captured
  const own = byEmail ? loginByEmail(byEmail, captured.login) : captured.login
  const newer = newerLogin(await provider().Session.get(ctx), own)
  const { ts: checkedAt } = newer ?? captured.login
  const uid = randomBytes(32).toString('base64url')
  const route = request.deviceCode === undefined ? 'resume' : 'device_resume'
  const path = provider().pathFor(route, { uid, mountPath: '' })
  await saveInteraction(provider(), uid, {
    ...request,
    returnTo: new URL(provider().pathFor(route, { uid }), provider().issuer).href,
    // The provider counts max_age from now, not from the password check; so it is asked again where that was too long ago.
    ...(!isTooOld(captured, checkedAt, clock.now()) && {
      result: { ...consentOf(captured), login: newer ?? own },
    }),
  })
  injectCookie(ctx, provider().cookieName('resume'), uid)
  await reenter(parts, ctx, next, path)
  return !wasGone(ctx.req)
}

// What the person did in this browser since is what is true there: a session never goes back to an earlier login.
function newerLogin(session: Session, than: LoginResult): LoginResult | undefined {
  const { accountId, loginTs = 0, acr, amr, transient } = session
  if (accountId !== than.accountId || loginTs <= than.ts) return undefined
  return {
    accountId,
    ts: loginTs,
    ...(acr !== undefined && { acr }),
    ...(amr !== undefined && { amr }),
    remember: transient !== true,
  }
}

function loginByEmail(
  { accountId, second: ts, seen }: EmailLogin,
  { remember }: LoginResult,
): LoginResult {
  const login = { accountId, ts, accountFlowsSeen: seen, amr: ['email'] }
  return { ...login, ...(remember !== undefined && { remember }) }
}

// What somebody else had answered before is none of this account's.
function consentOf({ lastSubmission, login }: CapturedRequest): Record<string, unknown> {
  const before: unknown = lastSubmission?.['login']
  const isSame =
    typeof before === 'object' &&
    before !== null &&
    Reflect.get(before, 'accountId') === login.accountId
  return isSame ? { ...lastSubmission } : {}
}

function isTooOld({ params }: CapturedRequest, checkedAt: number, at: Date): boolean {
  const maxAge = params['max_age']
  return maxAge !== undefined && loginSecond(at) - checkedAt > Number(maxAge)
}

async function saveInteraction(provider: Provider, uid: string, payload: object): Promise<void> {
  const Interaction: unknown = provider.Interaction
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- its constructor is not typed
  const create = Interaction as new (uid: string, payload: object) => Interaction
  await new create(uid, payload).save(HANDOVER_SECONDS)
}

async function reenter({ openLogin }: Parts, ctx: Context, next: Next, path: string) {
  const original: unknown = Reflect.get(ctx.req, 'originalUrl')
  // Frameworks that strip a prefix keep it here, and the provider builds its addresses from it.
  if (typeof original === 'string') {
    const prefix = original.endsWith(ctx.url) ? original.slice(0, -ctx.url.length) : ''
    Reflect.set(ctx.req, 'originalUrl', prefix + path)
  }
  ctx.url = path
  ctx.method = 'GET'
  await next()
  // The provider has answered then as well, and finished nothing.
  rethrowFailure(ctx.req)
  if (!wasGone(ctx.req)) openLogin.forget(ctx)
  if (ctx.status === 303) ctx.status = 302
  // The link is in the address of this answer. A form that posts itself to the client says at least where it comes from.
  ctx.set('Referrer-Policy', ctx.status === 302 ? 'no-referrer' : 'strict-origin')
}
