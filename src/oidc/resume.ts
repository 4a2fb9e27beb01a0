/**
 * Finishes a captured authorization request inside the provider's own pipeline, in one response: from any browser, and long after the
 * interaction expired. oidc-provider does not document three things that are used here. A contract test pins them: the constructor of
 * `provider.Interaction`, the uid of the interaction in the resume cookie, and the route names `resume` and `device_resume`.
 */
import { randomBytes } from 'node:crypto'
import type { Context, Middleware, Next } from 'koa'
import type { Interaction, Provider, Session } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import { appendParameters, type RequestParameters } from '../contract/parameters.ts'
import { loginSecond } from '../store/cutoffs.ts'
import type { CapturedRequest, LoginResult } from '../store/logins.ts'
import { defined } from '../store/kind.ts'
import type { LoginPage } from './login-page-cookie.ts'
import { outcomeOf } from './provider-answers.ts'

/** Long enough, because the one request that makes the record also uses it. */
const HANDOVER_SECONDS = 60

/** A login that only the link proves, dated when the request with the link arrived. */
type EmailLogin = Omit<LoginResult, 'remember'> & { amr: string[] }

interface ResumeParts {
  provider(): Provider
  loginPage: Pick<LoginPage, 'forget'>
  clock: Clock
}

export function createResume(parts: ResumeParts) {
  const { provider } = parts
  return {
    signedInAccount: async (ctx: Context) => (await provider().Session.get(ctx)).accountId,

    /** Ends a live session of another account, so that nothing of it reaches the new session. */
    async endForeignSession(ctx: Context, accountId: string) {
      const session = await provider().Session.get(ctx)
      if (session.accountId === undefined || session.accountId === accountId) return
      await session.destroy()
      hideSession(parts, ctx)
    },

    /**
     * Signs the account in and finishes the request: 302 to the client, or the next page that it needs. If the account has signed in here
     * again since then, that newer login is used. `false`: the login was ended, the browser is not signed in, and the caller answers.
     */
    finishByEmail: (ctx: Context, next: Next, captured: CapturedRequest, login: EmailLogin) =>
      finish(parts, ctx, next, captured, login),

    /** The same in the window that logged in. A link in another browser may have used up a pushed request, which is good for one answer. */
    finishInWindow: (ctx: Context, next: Next, captured: CapturedRequest) =>
      withoutPushed(parts, captured, (request) => finish(parts, ctx, next, request)),

    /** Answers the client `access_denied`, also if the interaction has expired. */
    deny: (ctx: Context, next: Next, captured: CapturedRequest) =>
      withoutPushed(parts, captured, (request) =>
        resumeRequest(parts, ctx, next, { ...request, result: DENIED }),
      ),

    /** Shows the login page again, also if an account is signed in. The new login leads on to the client. */
    askAgain: askAgain.bind(undefined, parts),

    /** Signs in, and sends the parameters through the authorization endpoint. What was not captured, such as PKCE, is never assumed. */
    async authorizeByEmail(
      ctx: Context,
      next: Next,
      { accountId, ts: loginTs, amr }: EmailLogin,
      parameters: RequestParameters,
    ) {
      const session = await provider().Session.get(ctx)
      session.loginAccount({ accountId, loginTs, amr })
      session.resetIdentifier()
      await session.save(HANDOVER_SECONDS)
      injectCookie(ctx, provider().cookieName('session'), session.jti)
      const query = appendParameters(new URLSearchParams({ response_type: 'code' }), parameters)
      const path = provider().pathFor('authorization', { mountPath: '' })
      await reenter(parts, ctx, next, `${path}?${query.toString()}`)
    },
  }
}

async function findPushed({ provider }: ResumeParts, parJti: string | undefined) {
  return parJti === undefined ? undefined : provider().PushedAuthorizationRequest.find(parJti)
}

async function withoutPushed<T>(
  parts: ResumeParts,
  { parJti, ...request }: CapturedRequest,
  goOn: (request: CapturedRequest) => Promise<T>,
): Promise<T> {
  const pushed = await findPushed(parts, parJti)
  const outcome = await goOn(request)
  // The answer stands if this fails: a pushed request lives for a minute only.
  await pushed?.consume().catch(() => {})
  return outcome
}

async function askAgain(
  parts: ResumeParts,
  ctx: Context,
  next: Next,
  // Consent and `login_hint` belong to the previous account, so both are dropped.
  { parJti, lastSubmission: _consent, ...request }: CapturedRequest,
): Promise<void> {
  const pushed = await findPushed(parts, parJti)
  const { login_hint: _hint, prompt = '', ...others } = request.params
  const prompts = new Set(String(prompt).split(' ').filter(Boolean)).add('login')
  const params = { ...others, prompt: [...prompts].join(' ') }
  // A device flow ignores `prompt`.
  hideSession(parts, ctx)
  // A client may have to push its requests, so the pushed one is kept, unless it was used elsewhere.
  const isPushed = parJti !== undefined && pushed?.consumed === undefined
  await resumeRequest(parts, ctx, next, { ...request, params, ...(isPushed && { parJti }) })
}

const DENIED = { error: 'access_denied', error_description: 'End-User aborted interaction' }

async function finish(
  parts: ResumeParts,
  ctx: Context,
  next: Next,
  captured: CapturedRequest,
  byEmail?: EmailLogin,
): Promise<boolean> {
  const { provider, clock } = parts
  const { lastSubmission, ...request } = captured
  const { remember, accountId } = captured.login
  const login = byEmail ? { ...byEmail, ...defined({ remember }) } : captured.login
  const newer = newerLogin(await provider().Session.get(ctx), login)
  const { ts: checkedAt } = newer ?? captured.login
  // The provider counts max_age from now. If the password check is older, it gets no result, and shows the login page again.
  const { max_age: maxAge } = captured.params
  const isTooOld = maxAge !== undefined && loginSecond(clock.now()) - checkedAt > Number(maxAge)
  // The last submission counts only if it is of this account.
  const isSame = Reflect.get(Object(lastSubmission?.['login']), 'accountId') === accountId
  const result = { ...(isSame && lastSubmission), login: newer ?? login }
  await resumeRequest(parts, ctx, next, { ...request, ...(!isTooOld && { result }) })
  return !outcomeOf(ctx.req).isGone
}

// A session never goes back to an earlier login.
function newerLogin(session: Session, than: LoginResult): LoginResult | undefined {
  const { accountId, loginTs = 0, acr, amr, transient } = session
  if (accountId !== than.accountId || loginTs <= than.ts) return undefined
  return { accountId, ts: loginTs, ...defined({ acr, amr }), remember: transient !== true }
}

/** Sends a request through the provider again, as if the login page had answered with this result. */
async function resumeRequest(
  parts: ResumeParts,
  ctx: Context,
  next: Next,
  request: Omit<CapturedRequest, 'login'> & { result?: object },
) {
  const { provider } = parts
  const uid = randomBytes(32).toString('base64url')
  const route = request.deviceCode === undefined ? 'resume' : 'device_resume'
  const path = provider().pathFor(route, { uid, mountPath: '' })
  const returnTo = new URL(provider().pathFor(route, { uid }), provider().issuer).href
  const payload = { ...request, returnTo }
  const interaction: Interaction = Reflect.construct(provider().Interaction, [uid, payload])
  await interaction.save(HANDOVER_SECONDS)
  injectCookie(ctx, provider().cookieName('resume'), uid)
  await reenter(parts, ctx, next, path)
}

/** Answers this request as the provider answers a GET of that path. */
async function reenter({ loginPage }: ResumeParts, ctx: Context, next: Next, path: string) {
  const original: unknown = Reflect.get(ctx.req, 'originalUrl')
  // Frameworks that strip a prefix from `url` keep it here, and the provider builds its addresses from it.
  if (typeof original === 'string') {
    const prefix = original.endsWith(ctx.url) ? original.slice(0, -ctx.url.length) : ''
    Reflect.set(ctx.req, 'originalUrl', prefix + path)
  }
  ctx.url = path
  ctx.method = 'GET'
  await next()
  const { failure, isGone } = outcomeOf(ctx.req)
  if (failure) throw failure
  if (!isGone) loginPage.forget(ctx)
  if (ctx.status === 303) ctx.status = 302
  // The address contains the link, so no referrer may name it. A page that posts a form to the client needs at least an origin.
  ctx.set('Referrer-Policy', ctx.status === 302 ? 'no-referrer' : 'strict-origin')
}

/** Restores address, method and cookies of the request for the host. */
export const restoreRequest: Middleware = async (ctx, next) => {
  const { url, method } = ctx
  const { cookie } = ctx.req.headers
  const original: unknown = Reflect.get(ctx.req, 'originalUrl')
  try {
    await next()
  } finally {
    ctx.url = url
    ctx.method = method
    if (cookie === undefined) delete ctx.req.headers.cookie
    else ctx.req.headers.cookie = cookie
    if (original !== undefined) Reflect.set(ctx.req, 'originalUrl', original)
  }
}

/** For the rest of this request, the browser has no session. */
function hideSession({ provider }: ResumeParts, { req: { headers } }: Context): void {
  headers.cookie = withoutCookie(headers.cookie, provider().cookieName('session')).join('; ')
}

/** Adds a cookie to the request, signed as the provider expects. That saves a redirect to ourselves. */
function injectCookie(ctx: Context, name: string, value: string): void {
  const kept = withoutCookie(ctx.req.headers.cookie, name)
  const pairs = [...kept, `${name}=${value}`]
  // The types lack `keys`.
  const { keys }: { keys?: { sign(data: string): string } } = Object(ctx.cookies)
  if (keys) pairs.push(`${name}.sig=${keys.sign(`${name}=${value}`)}`)
  ctx.req.headers.cookie = pairs.join('; ')
}

function withoutCookie(header: string | undefined, name: string): string[] {
  const pairs = (header ?? '').split(';').map((pair) => pair.trim())
  return pairs.filter(
    (pair) => pair !== '' && !pair.startsWith(`${name}=`) && !pair.startsWith(`${name}.sig=`),
  )
}
