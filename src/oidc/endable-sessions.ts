import type { Adapter, AdapterConstructor, AdapterFactory, AdapterPayload } from 'oidc-provider'
import { isStoreUnavailable } from '../errors.ts'
import { isEnded } from '../ports/login-end.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import type {
  AccountSessions,
  EndedCount,
  Log,
  SessionCutoffs,
  SessionCutoffStore,
} from '../ports/index.ts'
import { accountStamp, IDP_MODELS, OAUTH_MODELS } from './account-stamp.ts'
import { keepSession } from './kept-session.ts'
import { waitingOnce } from './outages.ts'
import {
  createSeenLogins,
  type SeenLogins,
  type SeenParts,
  type SeenRecords,
} from './seen-logins.ts'

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
 * An adapter factory that may need to start first, for example to create indexes. It may seal its records with the secrets of
 * the flows.
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

export interface EndableParts extends SeenParts {
  cutoffs: SessionCutoffStore
  log: Log
  box: SecretBox
}

interface Parts extends EndableParts {
  factories: StartableAdapterFactory[]
}

export function createEndableSessions(outside: EndableParts): EndableSessions {
  const parts: Parts = { ...outside, factories: [] }
  const { cutoffs, box, factories } = parts
  const { alive, stamped, ...logins } = createSeenLogins(parts)
  const wrappers = new WeakSet<object>()
  const adaptersOf = (model: string) => factories.map((factory) => factory(model, box))
  const keeping = { ...outside, adaptersOf }

  return {
    ...logins,
    adapter(wrapped) {
      const factory = onePerModel(asFactory(wrapped))
      factories.push(factory)
      return (model) => {
        const outer = wrap({ alive, stamped }, model, factory(model, box))
        wrappers.add(outer)
        return outer
      }
    },

    expectOurs(adapter) {
      if (wrappers.has(adapter)) return
      throw new TypeError(
        'adapter of the provider must be flows.adapter(…). For development: flows.adapter(memoryAdapter())',
      )
    },

    async endOAuthSessions(accountId, end, kept) {
      const ends = await cutoffs.end(accountId, 'oauth', end)
      if (kept !== undefined) await keepSession(keeping, accountId, kept, 'oauth', ends)
      return remove(parts, OAUTH_MODELS, accountId, ends)
    },

    async endIdpSessions(accountId, end, kept) {
      const ends = await cutoffs.end(accountId, 'idp', end)
      if (kept !== undefined) await keepSession(keeping, accountId, kept, 'idp', ends)
      return remove(parts, IDP_MODELS, accountId, ends)
    },

    async start() {
      for (const factory of factories) await factory.start?.(box)
    },
  }
}

function wrap({ alive, stamped }: SeenRecords, model: string, inner: Adapter): Adapter {
  return waitingOnce({
    upsert: async (id, payload, expiresIn) =>
      inner.upsert(id, await stamped(model, payload, async () => inner.find(id)), expiresIn),
    find: async (id) => alive(model, await inner.find(id)),
    findByUid: async (uid) => alive(model, await inner.findByUid(uid)),
    findByUserCode: async (userCode) => alive(model, await inner.findByUserCode(userCode)),
    consume: (id) => inner.consume(id),
    destroy: (id) => inner.destroy(id),
    revokeByGrantId: (grantId) => inner.revokeByGrantId(grantId),
  })
}

// The cut-off alone is the guarantee; deleting is hygiene, and leaves alone what came later than the cut-off.
async function remove(
  { factories, box, log }: Parts,
  models: string[],
  accountId: string,
  ends: SessionCutoffs,
) {
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
        log('error', 'ended sessions and tokens could not be deleted; they are dead all the same', {
          model,
          error: String(error),
        })
        // Each further model would wait as long again.
        if (isStoreUnavailable(error)) return count
      }
    }
  }
  return count
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
