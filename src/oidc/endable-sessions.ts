import { AsyncLocalStorage } from 'node:async_hooks'
import type { Middleware } from 'koa'
import type { Adapter, AdapterConstructor, AdapterFactory, AdapterPayload } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import { isStoreUnavailable } from '../errors.ts'
import {
  isEnded,
  loginSecond,
  seenAll,
  seenBy,
  seenNone,
  type SeenCutoffs,
} from '../ports/login-second.ts'
import { passwordDigest } from '../crypto/password.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import type {
  AccountSessions,
  EndedCount,
  Log,
  SessionCutoffs,
  SessionCutoffStore,
  User,
  UserStore,
} from '../ports/index.ts'
import { accountStamp, IDP_MODELS, OAUTH_MODELS, SEEN, type AccountStamp } from './account-stamp.ts'
import { waitingOnce } from './outages.ts'

/**
 * An adapter that finds what an account has. With it, ended sessions and tokens are also deleted, and counted; without it
 * they are dead all the same.
 */
export interface AccountAdapter extends Adapter {
  /** Deletes those records of the account that `isEnded`. Answers how many. */
  destroyByAccountId(
    accountId: string,
    isEnded: (payload: AdapterPayload) => boolean,
  ): Promise<number>
}

/**
 * An adapter factory that may have work to do before it is used, such as creating indexes, and may seal what it stores with the
 * secrets of the flows.
 */
export interface StartableAdapterFactory {
  (model: string, box: SecretBox): Adapter
  start?(box: SecretBox): Promise<void>
}

export interface EndableSessions extends AccountSessions {
  /** Wraps any adapter of oidc-provider, so that what a cut-off ended is never found again. */
  adapter(wrapped: AdapterConstructor | StartableAdapterFactory): AdapterFactory
  /** Throws a `TypeError` where this adapter was not made here. */
  expectOurs(adapter: object): void
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
  start(): Promise<void>
}

const ENDED_MODELS = ['Session', ...OAUTH_MODELS]

interface RequestMemory {
  /** The second in which the request arrived. */
  arrivedAt: number
  cutoffs: Map<string, Promise<SessionCutoffs | undefined>>
  accounts: Map<string, Promise<User | undefined>>
  /** By account, what the logins have seen of which it found or made anything. */
  logins: Map<string, SeenCutoffs>
}

export function createEndableSessions(
  cutoffs: SessionCutoffStore,
  users: Pick<UserStore, 'findById'>,
  { now }: Clock,
  log: Log,
  box: SecretBox,
  readsAccounts: () => boolean = () => false,
): EndableSessions {
  const request = new AsyncLocalStorage<RequestMemory>()
  const wrappers = new WeakSet<object>()
  const factories: StartableAdapterFactory[] = []

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
    if (accountId === undefined || !ENDED_MODELS.includes(model)) return payload
    const login = store?.logins.get(accountId)
    if (login) return { ...payload, [SEEN]: login }
    // A page of the host saves sessions and makes grants outside our middleware.
    if (model === 'Session') {
      const { accountId: same, seen } = sessionStamp(await before())
      return accountId === same && seen ? { ...payload, [SEEN]: seen } : payload
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

  function wrap(model: string, inner: Adapter): Adapter {
    const outer = waitingOnce({
      upsert: async (id, payload, expiresIn) =>
        inner.upsert(id, await stamped(model, payload, async () => inner.find(id)), expiresIn),
      find: async (id) => alive(model, await inner.find(id)),
      findByUid: async (uid) => alive(model, await inner.findByUid(uid)),
      findByUserCode: async (userCode) => alive(model, await inner.findByUserCode(userCode)),
      consume: (id) => inner.consume(id),
      destroy: (id) => inner.destroy(id),
      revokeByGrantId: (grantId) => inner.revokeByGrantId(grantId),
    })
    wrappers.add(outer)
    return outer
  }

  // The cut-off alone is the guarantee; deleting is hygiene, and leaves alone what came later than the cut-off.
  async function remove(models: string[], accountId: string, ends: SessionCutoffs) {
    const ended = (model: string) => (payload: AdapterPayload) => {
      const stamp = accountStamp(model, payload)
      return stamp?.accountId === accountId && isEnded(stamp.kind, stamp, ends)
    }
    let count: EndedCount
    for (const factory of factories) {
      for (const model of models) {
        const adapter = factory(model, box)
        if (!findsAccounts(adapter)) continue
        try {
          count = (count ?? 0) + (await adapter.destroyByAccountId(accountId, ended(model)))
        } catch (error) {
          log('error', 'ended records were not deleted', { model, error: String(error) })
          // Each further model would wait as long again.
          if (isStoreUnavailable(error)) return count
        }
      }
    }
    return count
  }

  return {
    adapter(wrapped) {
      const factory = onePerModel(asFactory(wrapped))
      factories.push(factory)
      return (model) => wrap(model, factory(model, box))
    },

    readCutoffs: read,
    readAccount,
    expectOurs(adapter) {
      if (wrappers.has(adapter)) return
      throw new TypeError(
        'adapter of the provider must be flows.adapter(…); memoryAdapter() is the embedded one to wrap',
      )
    },
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
    seenByLogin,

    async endOAuthSessions(accountId, at, isExact) {
      const ends = await cutoffs.endOAuthSessions(accountId, at, isExact)
      return remove(OAUTH_MODELS, accountId, ends)
    },

    async endIdpSessions(accountId, at, isExact) {
      const ends = await cutoffs.endIdpSessions(accountId, at, isExact)
      return remove(IDP_MODELS, accountId, ends)
    },

    async start() {
      for (const factory of factories) await factory.start?.(box)
    },
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

function sessionStamp(before: AdapterPayload | void): Partial<AccountStamp> {
  return (before && accountStamp('Session', before)) ?? {}
}

function findsAccounts(adapter: Adapter): adapter is AccountAdapter {
  return 'destroyByAccountId' in adapter
}

// oidc-provider takes a class or a factory; it tells them apart by the prototype, and so do we.
function asFactory(adapter: AdapterConstructor | StartableAdapterFactory): StartableAdapterFactory {
  return isConstructor(adapter) ? (model) => new adapter(model) : adapter
}

// An adapter may keep its data in the instance.
function onePerModel(factory: StartableAdapterFactory): StartableAdapterFactory {
  const made = new Map<string, Adapter>()
  const adapterOf = (model: string, box: SecretBox) => {
    const adapter = made.get(model) ?? factory(model, box)
    made.set(model, adapter)
    return adapter
  }
  return Object.assign(adapterOf, { start: async (box: SecretBox) => factory.start?.(box) })
}

function isConstructor(
  adapter: AdapterConstructor | StartableAdapterFactory,
): adapter is AdapterConstructor {
  return typeof adapter.prototype === 'object' && adapter.prototype !== null
}
