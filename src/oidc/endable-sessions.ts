import type { Adapter, AdapterConstructor, AdapterFactory, AdapterPayload } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import { isStoreUnavailable } from '../errors.ts'
import { isEnded } from '../ports/login-second.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import type {
  AccountSessions,
  EndedCount,
  Log,
  SessionCutoffs,
  SessionCutoffStore,
  UserStore,
} from '../ports/index.ts'
import { accountStamp, IDP_MODELS, OAUTH_MODELS } from './account-stamp.ts'
import { waitingOnce } from './outages.ts'
import { createSeenLogins, type SeenLogins } from './seen-logins.ts'

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

export interface EndableSessions extends AccountSessions, SeenLogins {
  /** Wraps any adapter of oidc-provider, so that what a cut-off ended is never found again. */
  adapter(wrapped: AdapterConstructor | StartableAdapterFactory): AdapterFactory
  /** Throws a `TypeError` where this adapter was not made here. */
  expectOurs(adapter: object): void
  start(): Promise<void>
}

export function createEndableSessions(
  cutoffs: SessionCutoffStore,
  users: Pick<UserStore, 'findById'>,
  clock: Clock,
  log: Log,
  box: SecretBox,
  readsAccounts: () => boolean = () => false,
): EndableSessions {
  const { alive, stamped, ...logins } = createSeenLogins(cutoffs, users, clock, readsAccounts)
  const wrappers = new WeakSet<object>()
  const factories: StartableAdapterFactory[] = []

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
    ...logins,
    adapter(wrapped) {
      const factory = onePerModel(asFactory(wrapped))
      factories.push(factory)
      return (model) => wrap(model, factory(model, box))
    },

    expectOurs(adapter) {
      if (wrappers.has(adapter)) return
      throw new TypeError(
        'adapter of the provider must be flows.adapter(…); memoryAdapter() is the embedded one to wrap',
      )
    },
    async endOAuthSessions(accountId, at, isExact) {
      const ends = await cutoffs.end(accountId, 'oauth', at, isExact)
      return remove(OAUTH_MODELS, accountId, ends)
    },

    async endIdpSessions(accountId, at, isExact) {
      const ends = await cutoffs.end(accountId, 'idp', at, isExact)
      return remove(IDP_MODELS, accountId, ends)
    },

    async start() {
      for (const factory of factories) await factory.start?.(box)
    },
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
