import type { Adapter, AdapterConstructor, AdapterFactory } from 'oidc-provider'
import type { SecretBox } from '../crypto/secret-box.ts'
import type { EndedCount, Log, SessionCutoffStore, SessionEnd } from '../ports/index.ts'
import type { StartableAdapterFactory } from './account-adapter.ts'
import { accountRecords } from './account-records.ts'
import { IDP_MODELS, OAUTH_MODELS } from './account-stamp.ts'
import type { NoteClients } from './ended-clients.ts'
import { waitingOnce } from './outages.ts'
import { createSeenLogins, type SeenLogins, type SeenParts } from './seen-logins.ts'

export interface EndableParts extends SeenParts {
  cutoffs: SessionCutoffStore
  log: Log
  box: SecretBox
  noteClients: NoteClients
}

type Parts = EndableParts & { factories: StartableAdapterFactory[] }

export function createEndableSessions(outside: EndableParts) {
  const parts: Parts = { ...outside, factories: [] }
  const { box, factories } = parts
  const { alive, stamped, ...logins } = createSeenLogins(parts)
  const wrappers = new WeakSet<object>()

  return {
    ...logins,
    /** Wraps any adapter of oidc-provider, so that what a cut-off ended is never found again. */
    adapter(wrapped: AdapterConstructor | StartableAdapterFactory): AdapterFactory {
      const factory = onePerModel(asFactory(wrapped))
      factories.push(factory)
      return (model) => {
        const outer = wrap({ alive, stamped }, model, factory(model, box))
        wrappers.add(outer)
        return outer
      }
    },

    /** Throws a `TypeError` where this adapter was not made here. */
    expectOurs(adapter: object) {
      if (wrappers.has(adapter)) return
      throw new TypeError(
        'adapter of the provider must be flows.adapter(…). For development: flows.adapter(memoryAdapter())',
      )
    },

    endOAuthSessions: (id: string, end: SessionEnd) => endSessions(parts, 'oauth', id, end),
    endIdpSessions: (id: string, end: SessionEnd) => endSessions(parts, 'idp', id, end),

    async start() {
      for (const factory of factories) await factory.start?.(box)
    },
  }
}

async function endSessions(
  parts: Parts,
  kind: 'oauth' | 'idp',
  accountId: string,
  end: SessionEnd,
): Promise<EndedCount> {
  const ends = await parts.cutoffs.end(accountId, kind, end)
  const records = accountRecords(parts, accountId, ends)
  await parts.noteClients(kind, accountId, end, records)
  return records.deleteEnded(kind === 'oauth' ? OAUTH_MODELS : IDP_MODELS)
}

function wrap(
  { alive, stamped }: Pick<SeenLogins, 'alive' | 'stamped'>,
  model: string,
  inner: Adapter,
): Adapter {
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
