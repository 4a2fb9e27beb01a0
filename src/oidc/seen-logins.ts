/**
 * What each request knows of the logins that its records come from, and of the cut-offs that these have seen.
 *
 * @module
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { Middleware } from 'koa'
import type { AdapterPayload } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import { passwordDigest } from '../crypto/password.ts'
import type { SessionCutoffs, SessionCutoffStore, User, UserStore } from '../ports/index.ts'
import {
  isEnded,
  loginSecond,
  seenAll,
  seenBy,
  seenNone,
  type SeenCutoffs,
} from '../ports/login-second.ts'
import { accountStamp, OAUTH_MODELS, SEEN, type AccountStamp } from './account-stamp.ts'

export interface SeenLogins {
  /** Lets one request read each account's cut-off at most once. */
  perRequest: Middleware
  /** The account's cut-offs, as this request sees them. */
  readCutoffs(accountId: string): Promise<SessionCutoffs | undefined>
  /** The account itself likewise; where `readsAccounts`, one whose login is finished is read beside its cut-offs. */
  readAccount(accountId: string): Promise<User | undefined>
  /**
   * Reads the cut-offs that a login is later than, before anything is made of it: all that come afterwards end it. Where the account has
   * cut-offs, a login is later than all of them if its password is the one of now, and ended if it is another one. For that the user is read.
   *
   * @param second - in which it arrived.
   * @param passwordDigest - of the password hash that it was checked with. `undefined`: nobody knows, and the clock decides.
   */
  seenByLogin(accountId: string, second: number, passwordDigest?: string): Promise<SeenCutoffs>
}

/** What an adapter asks for each record. */
export interface SeenRecords {
  /** The record, unless a cut-off ended it. */
  alive(model: string, payload: AdapterPayload | void): Promise<AdapterPayload | void>
  /** The record with what the login behind it has seen. `before`: the one that it takes the place of. */
  stamped(
    model: string,
    payload: AdapterPayload,
    before: () => Promise<AdapterPayload | void>,
  ): Promise<AdapterPayload>
}

const SAVED_BY_HOSTS = new Set(['Session', 'BackchannelAuthenticationRequest'])
const ENDED_MODELS = new Set(['Session', ...OAUTH_MODELS])

interface RequestMemory {
  /** The second in which the request arrived. */
  arrivedAt: number
  cutoffs: Map<string, Promise<SessionCutoffs | undefined>>
  accounts: Map<string, Promise<User | undefined>>
  /** By account, what the logins have seen of which it found or made anything. */
  logins: Map<string, SeenCutoffs>
}

export function createSeenLogins(
  cutoffs: Pick<SessionCutoffStore, 'read'>,
  users: Pick<UserStore, 'findById'>,
  { now }: Clock,
  readsAccounts: () => boolean,
): SeenLogins & SeenRecords {
  const request = new AsyncLocalStorage<RequestMemory>()
  const read = (accountId: string) =>
    once(request.getStore()?.cutoffs, accountId, () => cutoffs.read(accountId))

  const readAccount = (accountId: string) =>
    once(request.getStore()?.accounts, accountId, () => users.findById(accountId))

  async function alive(model: string, payload: AdapterPayload | void) {
    const stamp = payload && accountStamp(model, payload)
    if (!stamp) return payload
    const { accountId, kind, second } = stamp
    // Not of a session: a link is opened in it before it verifies its account. Whoever needs the account gets a failure.
    if (model === 'Interaction' && request.getStore() && readsAccounts())
      readAccount(accountId).catch(() => {})
    const ends = await read(accountId)
    if (isEnded(kind, stamp, ends)) return undefined
    rememberLogin(accountId, stamp.seen ?? seenBy(second, ends))
    return payload
  }

  function rememberLogin(accountId: string, seen: SeenCutoffs) {
    const logins = request.getStore()?.logins
    const { idp, oauth } = logins?.get(accountId) ?? seen
    logins?.set(accountId, { idp: Math.min(idp, seen.idp), oauth: Math.min(oauth, seen.oauth) })
  }

  // What a request makes has seen what the login has that it makes it of, or what it has itself: one that began before a cut-off, and
  // ends after it, makes nothing that lives.
  async function stamped(
    model: string,
    payload: AdapterPayload,
    before: () => Promise<AdapterPayload | void>,
  ): Promise<AdapterPayload> {
    if (model === 'Interaction') return withSeenLogin(payload)
    const { accountId } = payload
    const store = request.getStore()
    if (accountId === undefined || !ENDED_MODELS.has(model)) return payload
    const login = store?.logins.get(accountId)
    if (login) return { ...payload, [SEEN]: login }
    // A page of the host saves sessions and CIBA requests, and makes grants, outside our middleware.
    if (SAVED_BY_HOSTS.has(model)) {
      const { accountId: same, seen } = stampOf(model, await before())
      if (accountId === same && seen) return { ...payload, [SEEN]: seen }
      if (model === 'Session') return payload
    }
    if (!store && model !== 'Grant') return payload
    // These two open nothing without a login that lives or the person's consent, so that they need not be of a password.
    const isOfNone = !store || model === 'BackchannelAuthenticationRequest'
    const ends = await read(accountId)
    return { ...payload, [SEEN]: isOfNone ? seenAll(ends) : seenBy(store.arrivedAt, ends) }
  }

  // Without a time, oidc-provider dates the login at the moment the result is used, however late that is.
  async function withSeenLogin(payload: AdapterPayload): Promise<AdapterPayload> {
    const login = payload.result?.login
    if (!login) return payload
    const { accountId, ts = loginSecond(now()) } = login
    const stamp = accountStamp('Interaction', payload)
    const known = stamp?.seen ?? request.getStore()?.logins.get(accountId)
    const seen = known ?? seenBy(ts, await read(accountId))
    rememberLogin(accountId, seen)
    return { ...payload, result: { ...payload.result, login: { ...login, ts, [SEEN]: seen } } }
  }

  async function seenByLogin(accountId: string, second: number, digest?: string) {
    const ends = await read(accountId)
    const seen = !ends || digest === undefined ? seenBy(second, ends) : await judged(ends)
    rememberLogin(accountId, seen)
    return seen

    async function judged(before: SessionCutoffs) {
      const user = await users.findById(accountId)
      const isOfNow = user !== undefined && passwordDigest(user.passwordHash) === digest
      return isOfNow ? seenAll(before) : seenNone()
    }
  }

  return {
    alive,
    stamped,
    seenByLogin,
    readCutoffs: read,
    readAccount,
    perRequest: (_ctx, next) =>
      request.run(
        {
          arrivedAt: loginSecond(now()),
          cutoffs: new Map(),
          accounts: new Map(),
          logins: new Map(),
        },
        next,
      ),
  }
}

function once<T>(
  known: Map<string, Promise<T>> | undefined,
  key: string,
  read: () => Promise<T>,
): Promise<T> {
  const reading = known?.get(key) ?? read()
  known?.set(key, reading)
  return reading
}

function stampOf(model: string, before: AdapterPayload | void): Partial<AccountStamp> {
  return (before && accountStamp(model, before)) ?? {}
}
