// A new session for the one browser that stays signed in while its account is signed out. A test pins what oidc-provider does not document:
// `Session.get` reads its cookie with the options that set it.
import type { Context } from 'koa'
import type { Provider } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import type { Log } from '../contract/index.ts'
import type { AccountFlowsStore } from '../store/index.ts'
import { loginSecond, seenAll } from '../store/cutoffs.ts'
import { must } from '../errors.ts'
import type { SeenLogins } from './seen-logins.ts'

interface Parts {
  provider(): Provider
  sessions: Pick<SeenLogins, 'readCutoffs' | 'runAsLogin'>
  cutoffs: Pick<AccountFlowsStore['cutoffs'], 'read'>
  clock: Clock
  log: Log
}

export function createLiveSession({ provider, sessions, cutoffs, clock, log }: Parts) {
  return async (browser: Pick<Context, 'req' | 'res'>, accountId: string) => {
    // Reads the cut-offs before the session. So an end in between also ends the new session.
    const idp = seenAll(await sessions.readCutoffs(accountId)).idp + 1
    const { session, setCookie } = await sessionIn(provider(), browser)
    if (session.accountId !== accountId) return undefined

    return {
      endsAt: new Date(idp),
      async renew() {
        try {
          const { Session } = provider()
          const { loginTs, acr, amr, transient, exp } = session
          const renewed = new Session()
          renewed.loginAccount({ accountId, loginTs, acr, amr, transient })
          // Sets the cookie first: if the save fails, a cookie without a session opens nothing. A session without a cookie would stay.
          setCookie(renewed.jti, transient ? undefined : exp)
          const { oauth } = seenAll(await cutoffs.read(accountId))
          const login = { second: loginTs, seen: { idp, oauth } }
          const secondsLeft = Math.max(1, exp - loginSecond(clock.now()))
          await sessions.runAsLogin(accountId, login, () => renewed.save(secondsLeft))
        } catch (error) {
          const message = 'a browser got no new session; everything of its account is ended'
          log('error', message, { error: String(error) })
        }
      },
    }
  }
}

type CookieOptions = Parameters<ReturnType<Provider['createContext']>['cookies']['set']>[2]

/** The session of a browser, and how to set its cookie. `exp`: seconds since the epoch; `undefined`: the cookie ends with the browser. */
async function sessionIn(provider: Provider, { req, res }: Pick<Context, 'req' | 'res'>) {
  const ctx = provider.createContext(req, res)
  const { cookies } = ctx
  let options: CookieOptions
  const get: typeof cookies.get = (name, given) => {
    options = given
    return cookies.get(name, given)
  }
  const session = await provider.Session.get(Object.assign(ctx, { oidc: { cookies: { get } } }))

  function setCookie(id: string, exp: number | undefined) {
    must(options, 'oidc-provider does not tell how it sets its session cookie')
    // Behind a proxy, perhaps only the framework of the host knows that this is https.
    cookies.secure ||= provider.issuer.startsWith('https:')
    const expires = exp !== undefined && { expires: new Date(exp * 1000) }
    cookies.set(provider.cookieName('session'), id, { ...options, ...expires })
  }

  return { session, setCookie }
}
