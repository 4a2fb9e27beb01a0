/**
 * Finishes an authorization request from an e-mailed link, inside the provider's own pipeline and in one response. This
 * works from any browser and long after the interaction expired, because the whole request was captured.
 */
import type { Context, Next } from 'koa'
import type { Session } from 'oidc-provider'
import { appendCarried } from '../ports/carried-query.ts'
import { loginSecond } from '../ports/login-end.ts'
import type { CapturedRequest, CarriedParameters, LoginResult } from '../ports/index.ts'
import { defined } from '../records/kind.ts'
import { outcomeOf } from './provider-answers.ts'
import {
  dropCookie,
  HANDOVER_SECONDS,
  injectCookie,
  reenter,
  reopen,
  type ReenterParts,
} from './reenter.ts'

/** A login that only the link proves; of the second in which the request with the link arrived. */
export type EmailLogin = Omit<LoginResult, 'remember'> & { amr: string[] }

export type WayOut = 'denied' | 'asked_again'

export type Resume = ReturnType<typeof createResume>

export function createResume(parts: ReenterParts) {
  const { provider } = parts
  return {
    /** The live session in this browser. `undefined`: nobody is signed in. */
    async liveSession(ctx: Context) {
      const { accountId } = await provider().Session.get(ctx)
      return accountId === undefined ? undefined : { accountId }
    },

    /** Ends a live session of another account; nothing of it may reach the one to come. */
    async endForeignSession(ctx: Context, accountId: string) {
      const session = await provider().Session.get(ctx)
      if (session.accountId === undefined || session.accountId === accountId) return
      await session.destroy()
      dropCookie(ctx, provider().cookieName('session'))
    },

    /**
     * Signs the account in and finishes the captured request: 302 to the client, or the next page that it needs. With `byEmail` the
     * session says that this browser has shown the link alone. If the account signed in here again since, that login is used. `false`:
     * the login was ended, nobody is signed in, and the caller answers.
     */
    captured: finish.bind(undefined, parts),

    /**
     * The same in the window that logged in. A link in another browser may have finished this request before. It may also have
     * used up a pushed request, which is good for one answer.
     */
    waiting: (ctx: Context, next: Next, captured: CapturedRequest) =>
      withoutPushed(parts, captured, (request) => finish(parts, ctx, next, request)),

    /**
     * Goes back to the captured request without its login, also where its interaction expired. `denied`: the client is answered
     * `access_denied`. `asked_again`: the login page is shown anew, whoever is signed in, and leads on to the client.
     */
    left: (ctx: Context, next: Next, captured: CapturedRequest, how: WayOut) =>
      how === 'asked_again'
        ? askAgain(parts, ctx, next, captured)
        : withoutPushed(parts, captured, (request) =>
            reopen(parts, ctx, next, { ...request, result: DENIED }),
          ),

    /**
     * Signs the account in by its e-mail alone, then sends the carried parameters through the authorization endpoint with all its
     * checks. Parameters that were not captured, such as PKCE, are never assumed.
     */
    async carried(
      ctx: Context,
      next: Next,
      { accountId, ts: loginTs, amr }: EmailLogin,
      carried: CarriedParameters,
    ) {
      const session = await provider().Session.get(ctx)
      session.loginAccount({ accountId, loginTs, amr })
      session.resetIdentifier()
      await session.save(HANDOVER_SECONDS)
      injectCookie(ctx, provider().cookieName('session'), session.jti)
      const query = appendCarried(new URLSearchParams({ response_type: 'code' }), carried)
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
  // The answer stands without it: a pushed request that nobody uses up lives for a minute.
  await pushed?.consume().catch(() => {})
  return outcome
}

async function askAgain(
  parts: ReenterParts,
  ctx: Context,
  next: Next,
  // Consent and `login_hint` belong to the account that is left: both are dropped.
  { parJti, lastSubmission: _consent, ...request }: CapturedRequest,
): Promise<void> {
  const pushed = await findPushed(parts, parJti)
  const { login_hint: _hint, prompt = '', ...others } = request.params
  const prompts = new Set(String(prompt).split(' ').filter(Boolean)).add('login')
  const params = { ...others, prompt: [...prompts].join(' ') }
  // A pushed request that was used elsewhere is not kept. A client that has to push its requests needs any other.
  const isPushed = parJti !== undefined && pushed?.consumed === undefined
  await reopen(parts, ctx, next, { ...request, params, ...(isPushed && { parJti }) })
}

const DENIED = { error: 'access_denied', error_description: 'End-User aborted interaction' }

async function finish(
  parts: ReenterParts,
  ctx: Context,
  next: Next,
  captured: CapturedRequest,
  byEmail?: EmailLogin,
): Promise<boolean> {
  const { provider, clock } = parts
  const { lastSubmission, ...request } = captured
  const { remember, accountId } = captured.login
  const own = byEmail ? { ...byEmail, ...defined({ remember }) } : captured.login
  const newer = newerLogin(await provider().Session.get(ctx), own)
  const { ts: checkedAt } = newer ?? captured.login
  // The provider counts max_age from now, not from the password check; so it is asked again where that was too long ago.
  const { max_age: maxAge } = captured.params
  const isTooOld = maxAge !== undefined && loginSecond(clock.now()) - checkedAt > Number(maxAge)
  // The last submission counts only if it is of this account.
  const isSame = Reflect.get(Object(lastSubmission?.['login']), 'accountId') === accountId
  const result = { ...(isSame && lastSubmission), login: newer ?? own }
  await reopen(parts, ctx, next, { ...request, ...(!isTooOld && { result }) })
  return !outcomeOf(ctx.req).isGone
}

// A session never goes back to an earlier login.
function newerLogin(session: Session, than: LoginResult): LoginResult | undefined {
  const { accountId, loginTs = 0, acr, amr, transient } = session
  if (accountId !== than.accountId || loginTs <= than.ts) return undefined
  return { accountId, ts: loginTs, ...defined({ acr, amr }), remember: transient !== true }
}
