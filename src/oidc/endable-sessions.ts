import { AsyncLocalStorage } from 'node:async_hooks'
import type { Middleware } from 'koa'
import type { Adapter, AdapterConstructor, AdapterFactory, AdapterPayload } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import { isStoreUnavailable } from '../errors.ts'
import { isEndedBy, loginSecond } from '../login-second.ts'
import type { Log, SessionCutoffs, SessionCutoffStore } from '../ports.ts'
import {
  accountStamp,
  IDP_MODELS,
  OAUTH_MODELS,
  REQUEST_SECOND,
  type AccountStamp,
} from './account-stamp.ts'

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

/** An adapter factory with work to do before it is used, such as creating indexes. */
export interface StartableAdapterFactory extends AdapterFactory {
  start?(): Promise<void>
}

/** How many records were deleted. `undefined`: the adapter cannot tell. */
export type EndedCount = number | undefined

export interface EndableSessions {
  /** Wraps any adapter of oidc-provider, so that what a cut-off ended is never found again (D9). */
  adapter(wrapped: AdapterConstructor | StartableAdapterFactory): AdapterFactory
  /** Throws a `TypeError` where this adapter was not made here. */
  expectOurs(adapter: object): void
  /** Lets one request read each account's cut-off at most once. */
  perRequest: Middleware
  /** The account's cut-offs, as this request sees them. */
  readCutoffs(accountId: string): Promise<SessionCutoffs | undefined>
  /** Ends grants, codes and tokens from `at` or before (3.3, effect 3). */
  endOAuthSessions(accountId: string, at: Date): Promise<EndedCount>
  /** Ends sessions and login results from `at` or before (3.3, effect 4). */
  endIdpSessions(accountId: string, at: Date): Promise<EndedCount>
  start(): Promise<void>
}

interface RequestMemory {
  /** The second in which the request arrived. */
  arrivedAt: number
  cutoffs: Map<string, Promise<SessionCutoffs | undefined>>
}

export function createEndableSessions(
  cutoffs: SessionCutoffStore,
  { now }: Clock,
  log: Log,
): EndableSessions {
  const request = new AsyncLocalStorage<RequestMemory>()
  const wrappers = new WeakSet<object>()
  const factories: StartableAdapterFactory[] = []

  function read(accountId: string): Promise<SessionCutoffs | undefined> {
    const known = request.getStore()?.cutoffs
    const reading = known?.get(accountId) ?? cutoffs.read(accountId)
    known?.set(accountId, reading)
    return reading
  }

  async function alive(model: string, payload: AdapterPayload | void) {
    const stamp = payload && accountStamp(model, payload)
    if (!stamp) return payload
    return isEnded(stamp, await read(stamp.accountId)) ? undefined : payload
  }

  // What a request makes is as old as the request: one that began before a cut-off, and ends after it, makes nothing that lives.
  function stamped(model: string, payload: AdapterPayload) {
    if (model === 'Interaction') return withLoginSecond(payload, now())
    const arrivedAt = request.getStore()?.arrivedAt
    const isDatedByIat = model === 'Grant' || model === 'AccessToken'
    return isDatedByIat && arrivedAt !== undefined && payload.accountId !== undefined
      ? { ...payload, [REQUEST_SECOND]: arrivedAt }
      : payload
  }

  function wrap(model: string, inner: Adapter): Adapter {
    const outer: Adapter = {
      upsert: (id, payload, expiresIn) => inner.upsert(id, stamped(model, payload), expiresIn),
      find: async (id) => alive(model, await inner.find(id)),
      findByUid: async (uid) => alive(model, await inner.findByUid(uid)),
      findByUserCode: async (userCode) => alive(model, await inner.findByUserCode(userCode)),
      consume: (id) => inner.consume(id),
      destroy: (id) => inner.destroy(id),
      revokeByGrantId: (grantId) => inner.revokeByGrantId(grantId),
    }
    wrappers.add(outer)
    return outer
  }

  // The cut-off alone is the guarantee; deleting is hygiene, and leaves alone what came later than the cut-off.
  async function remove(models: string[], accountId: string, ends: SessionCutoffs) {
    const ended = (model: string) => (payload: AdapterPayload) => {
      const stamp = accountStamp(model, payload)
      return stamp?.accountId === accountId && isEnded(stamp, ends)
    }
    let count: EndedCount
    for (const factory of factories) {
      for (const model of models) {
        const adapter = factory(model)
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
      return (model) => wrap(model, factory(model))
    },

    readCutoffs: read,
    expectOurs(adapter) {
      if (wrappers.has(adapter)) return
      throw new TypeError(
        'adapter of the provider must be flows.adapter(…); memoryAdapter() is the embedded one to wrap',
      )
    },
    perRequest: (_ctx, next) =>
      request.run({ arrivedAt: loginSecond(now()), cutoffs: new Map() }, next),

    async endOAuthSessions(accountId, at) {
      await cutoffs.endOAuthSessions(accountId, at)
      return remove(OAUTH_MODELS, accountId, { oauthAt: at, idpAt: undefined })
    },

    async endIdpSessions(accountId, at) {
      await cutoffs.endIdpSessions(accountId, at)
      return remove(IDP_MODELS, accountId, { idpAt: at, oauthAt: undefined })
    },

    async start() {
      for (const factory of factories) await factory.start?.()
    },
  }
}

function isEnded({ kind, second = 0 }: AccountStamp, cutoffs: SessionCutoffs | undefined) {
  return isEndedBy(kind === 'idp' ? cutoffs?.idpAt : cutoffs?.oauthAt, second)
}

// Without it, oidc-provider dates the login at the moment the result is used, however late that is.
function withLoginSecond(payload: AdapterPayload, at: Date): AdapterPayload {
  const login = payload.result?.login
  if (!login || login.ts !== undefined) return payload
  return {
    ...payload,
    result: { ...payload.result, login: { ...login, ts: loginSecond(at) } },
  }
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
  const adapterOf = (model: string) => {
    const adapter = made.get(model) ?? factory(model)
    made.set(model, adapter)
    return adapter
  }
  return Object.assign(adapterOf, { start: async () => factory.start?.() })
}

function isConstructor(
  adapter: AdapterConstructor | StartableAdapterFactory,
): adapter is AdapterConstructor {
  return typeof adapter.prototype === 'object' && adapter.prototype !== null
}
