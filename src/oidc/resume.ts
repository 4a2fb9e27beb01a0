/**
 * Finishes an authorization request from an e-mailed link, inside the provider's own pipeline and in one response. This works from any
 * browser and long after the interaction expired, because the whole request was captured.
 */
import type { Context, Next } from 'koa'
import type { Session } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import { appendParameters } from '../contract/requests.ts'
import { loginSecond } from '../store/cutoffs.ts'
import type { CapturedRequest, LoginResult } from '../store/logins.ts'
import type { RequestParameters } from '../contract/index.ts'
import { defined } from '../store/kind.ts'
import { outcomeOf } from './provider-answers.ts'
import {
  HANDOVER_SECONDS,
  dropCookie,
  injectCookie,
  reenter,
  resumeRequest,
  type ReenterParts,
} from './reenter.ts'

/** A login that only the link proves, dated when the request with the link arrived. */
export type EmailLogin = Omit<LoginResult, 'remember'> & { amr: string[] }

type ResumeParts = ReenterParts & { clock: Clock }

export function createResume(parts: ResumeParts) {
  const { provider } = parts
  return {
    /** The account that is signed in to this browser. `undefined`: no account is signed in. */
    signedInAccount: async (ctx: Context) => (await provider().Session.get(ctx)).accountId,

    /** Ends a live session of another account, so that nothing of it reaches the new session. */
    async endForeignSession(ctx: Context, accountId: string) {
      const session = await provider().Session.get(ctx)
      if (session.accountId === undefined || session.accountId === accountId) return
      await session.destroy()
      dropCookie(ctx, provider().cookieName('session'))
    },

    /**
     * Signs the account in and finishes the captured request: 302 to the client, or the next page that it needs. The session says that this
     * browser has shown only the link. If the account has signed in here again since then, that newer login is used. `false`: the login was
     * ended, the browser is not signed in, and the caller answers.
     */
    finishByEmail: (ctx: Context, next: Next, captured: CapturedRequest, login: EmailLogin) =>
      finish(parts, ctx, next, captured, login),

    /**
     * The same in the window that logged in. A link in another browser may have finished this request before. It may also have used up a
     * pushed request, which is good for one answer.
     */
    finishInWindow: (ctx: Context, next: Next, captured: CapturedRequest) =>
      withoutPushed(parts, captured, (request) => finish(parts, ctx, next, request)),

    /** Answers the client `access_denied`, also if the interaction has expired. */
    deny: (ctx: Context, next: Next, captured: CapturedRequest) =>
      withoutPushed(parts, captured, (request) =>
        resumeRequest(parts, ctx, next, { ...request, result: DENIED }),
      ),

    /** Shows the login page again, also if an account is signed in. The new login leads on to the client. */
    askAgain: (ctx: Context, next: Next, captured: CapturedRequest) =>
      askAgain(parts, ctx, next, captured),

    /**
     * Signs the account in by its e-mail alone, then sends the request parameters through the authorization endpoint with all its checks.
     * Parameters that were not captured, such as PKCE, are never assumed.
     */
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

async function findPushed({ provider }: ReenterParts, parJti: string | undefined) {
  return parJti === undefined ? undefined : provider().PushedAuthorizationRequest.find(parJti)
}

async function withoutPushed<T>(
  parts: ReenterParts,
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
  parts: ReenterParts,
  ctx: Context,
  next: Next,
  // Consent and `login_hint` belong to the previous account, so both are dropped.
  { parJti, lastSubmission: _consent, ...request }: CapturedRequest,
): Promise<void> {
  const pushed = await findPushed(parts, parJti)
  const { login_hint: _hint, prompt = '', ...others } = request.params
  const prompts = new Set(String(prompt).split(' ').filter(Boolean)).add('login')
  const params = { ...others, prompt: [...prompts].join(' ') }
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
  // The provider counts max_age from now. If the password check is older, the provider gets no result, and shows the login page again.
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
