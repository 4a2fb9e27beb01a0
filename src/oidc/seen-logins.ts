/** Of each request: the logins that its records come from, and the cut-offs that each login has seen. */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Context, Next } from 'koa'
import type { AdapterPayload } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import { passwordDigest } from '../crypto/password.ts'
import type { SessionCutoffs } from '../ports/index.ts'
import {
  isEnded,
  loginSecond,
  seenAll,
  seenBy,
  type SeenCutoffs,
  seenNone,
} from '../ports/login-end.ts'
import {
  accountStamp,
  earliest,
  type KnownLogin,
  OAUTH_MODELS,
  SEEN,
  withLogin,
} from './account-stamp.ts'
import type { OidcParts } from './parts.ts'

const SAVED_BY_HOSTS = new Set(['Session', 'BackchannelAuthenticationRequest'])
const ENDED_MODELS = new Set(['Session', ...OAUTH_MODELS])

type SeenParts = Pick<OidcParts, 'cutoffs' | 'users' | 'clock'>

interface Parts {
  clock: Clock
  memory(): Memory
  readCutoffs(accountId: string): Promise<SessionCutoffs | undefined>
}

export type SeenLogins = ReturnType<typeof createSeenLogins>

export function createSeenLogins({ cutoffs, users, clock }: SeenParts) {
  const request = new AsyncLocalStorage<Memory>()
  // Outside of requests nothing is remembered, and everything is read anew.
  const memory = () => request.getStore() ?? newMemory()

  /** The account's cut-offs, as this request sees them. */
  function readCutoffs(accountId: string): Promise<SessionCutoffs | undefined> {
    const known = memory().cutoffs
    const reading = known.get(accountId) ?? cutoffs.read(accountId)
    known.set(accountId, reading)
    return reading
  }

  return {
    readCutoffs,

    /** Middleware: each request of the provider has a memory of its own. */
    perRequest: (_ctx: Context, next: Next) =>
      request.run(newMemory(loginSecond(clock.now())), next),

    /** Stamps all records that `work` makes for the account with this login. */
    ofLogin: <T>(accountId: string, login: KnownLogin, work: () => Promise<T>) =>
      request.run(newMemory(undefined, [[accountId, login]]), work),

    /** Answers the record; `undefined` if a cut-off ended it. */
    async alive(model: string, payload: AdapterPayload | void) {
      const stamp = payload && accountStamp(model, payload)
      if (!stamp) return payload
      const { accountId, kind, second } = stamp
      const ends = await readCutoffs(accountId)
      if (isEnded(kind, stamp, ends)) return undefined
      remember(memory(), accountId, { second, seen: stamp.seen ?? seenBy(second, ends) }, kind)
      return payload
    },

    /** Adds to a record what its login has seen. `before` reads the record that it replaces. */
    stamped: stamped.bind(undefined, { clock, memory, readCutoffs }),

    /**
     * Reads the cut-offs that came before a login, before the login makes anything: all later ones end it. If the account has
     * cut-offs, the user is read too. With its present password the login is later than all cut-offs; with another one it is
     * ended.
     *
     * @param second - in which it arrived.
     * @param digest - of the password hash that it was checked with. `undefined`: nobody knows, and the clock decides.
     */
    async seenByLogin(accountId: string, second: number, digest?: string) {
      const ends = await readCutoffs(accountId)
      let seen = seenBy(second, ends)
      if (ends && digest !== undefined) {
        const user = await users.findById(accountId)
        const isOfNow = user !== undefined && passwordDigest(user.passwordHash) === digest
        seen = isOfNow ? seenAll(ends) : seenNone()
      }
      remember(memory(), accountId, { second, seen }, 'idp')
      return seen
    },
  }
}

/** `arrivedAt`: the second in which the request arrived. `undefined`: there is none. `logins`: what it may make things of, by account. */
const newMemory = (arrivedAt?: number, logins: [accountId: string, login: KnownLogin][] = []) => ({
  arrivedAt,
  cutoffs: new Map<string, Promise<SessionCutoffs | undefined>>(),
  logins: new Map(logins),
})

type Memory = ReturnType<typeof newMemory>

/** Adds a login to what the request knows. Of each cut-off the lowest value stays. */
function remember(
  { logins }: Memory,
  accountId: string,
  { second, seen }: KnownLogin,
  kind: keyof SeenCutoffs,
) {
  const known = logins.get(accountId) ?? { second, seen }
  const oauth = Math.min(known.seen.oauth, seen.oauth)
  // A grant may outlive its session, so it tells nothing about the session.
  const session = kind === 'oauth' ? known : { second, seen }
  const idp = Math.min(known.seen.idp, session.seen.idp)
  logins.set(accountId, { second: earliest(known.second, session.second), seen: { idp, oauth } })
}

// A record has seen the cut-offs of the login that it comes from, or of its own request. So a request that began before a
// cut-off, and ends after it, makes nothing that lives.
async function stamped(
  parts: Parts,
  model: string,
  payload: AdapterPayload,
  before: () => Promise<AdapterPayload | void>,
): Promise<AdapterPayload> {
  if (model === 'Interaction') return withSeenLogin(parts, payload)
  const { accountId } = payload
  if (accountId === undefined || !ENDED_MODELS.has(model)) return payload
  const { logins, arrivedAt } = parts.memory()
  const login = logins.get(accountId)
  if (login) return withLogin(payload, login)
  // A page of the host saves sessions and CIBA requests, and makes grants, outside our middleware.
  if (SAVED_BY_HOSTS.has(model)) {
    const former = await before()
    const stamp = former && accountStamp(model, former)
    if (stamp?.accountId === accountId && stamp.seen)
      return withLogin(payload, { second: stamp.second, seen: stamp.seen })
    if (model === 'Session') return payload
  }
  if (arrivedAt === undefined && model !== 'Grant') return payload
  const ends = await parts.readCutoffs(accountId)
  // A grant of a host's page, and a CIBA request, open nothing alone. So they count as having seen all cut-offs.
  const isOfNone = arrivedAt === undefined || model === 'BackchannelAuthenticationRequest'
  return isOfNone
    ? withLogin(payload, { second: undefined, seen: seenAll(ends) })
    : withLogin(payload, { second: arrivedAt, seen: seenBy(arrivedAt, ends) })
}

// Without a time, oidc-provider dates the login at the moment the result is used, however late that is.
async function withSeenLogin({ memory, readCutoffs, clock }: Parts, payload: AdapterPayload) {
  const login = payload.result?.login
  if (!login) return payload
  const { accountId, ts = loginSecond(clock.now()) } = login
  const stamp = accountStamp('Interaction', payload)
  const known = stamp?.seen ?? memory().logins.get(accountId)?.seen
  const seen = known ?? seenBy(ts, await readCutoffs(accountId))
  remember(memory(), accountId, { second: ts, seen }, 'idp')
  return { ...payload, result: { ...payload.result, login: { ...login, ts, [SEEN]: seen } } }
}
