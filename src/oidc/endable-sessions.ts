import type { Adapter, AdapterConstructor, AdapterFactory } from 'oidc-provider'
import type { EndedSessions, Log, SessionEnd } from '../ports/index.ts'
import type { SessionCutoffStore } from '../records/index.ts'
import { accountRecords } from './account-records.ts'
import { IDP_MODELS, OAUTH_MODELS } from './account-stamp.ts'
import type { NoteClients } from './ended-clients.ts'
import { waitingOnce } from './outages.ts'
import type { OwnAdapter } from './own-adapter.ts'
import { createSeenLogins, type SeenLogins, type SeenParts } from './seen-logins.ts'

export interface EndableParts extends SeenParts {
  cutoffs: SessionCutoffStore
  log: Log
  /** Keeps records where the flows keep theirs. */
  own: OwnAdapter
  noteClients: NoteClients
}

type Parts = EndableParts & { factories: AdapterFactory[] }

export function createEndableSessions(outside: EndableParts) {
  const parts: Parts = { ...outside, factories: [] }
  const { own, factories } = parts
  const { alive, stamped, ...logins } = createSeenLogins(parts)
  const wrappers = new WeakSet<object>()

  return {
    ...logins,
    /** Wraps any adapter of oidc-provider, so that what a cut-off ended is never found again. */
    adapter(wrapped: AdapterConstructor | AdapterFactory = own.of): AdapterFactory {
      const factory = onePerModel(asFactory(wrapped))
      factories.push(factory)
      return (model) => {
        const outer = wrap({ alive, stamped }, model, factory(model))
        wrappers.add(outer)
        return outer
      }
    },

    /** Throws a `TypeError` where this adapter was not made here. */
    expectOurs(adapter: object) {
      if (wrappers.has(adapter)) return
      throw new TypeError(
        'adapter of the provider must be flows.adapter(), or flows.adapter(yours)',
      )
    },

    end: endSessions.bind(undefined, parts),

    start: own.start,
  }
}

async function endSessions(
  parts: Parts,
  accountId: string,
  end: SessionEnd,
): Promise<EndedSessions> {
  const ends = await parts.cutoffs.end(accountId, end)
  const records = accountRecords(parts, accountId, ends)
  await parts.noteClients(accountId, end, records)
  const [oauth, idp] = await Promise.all([OAUTH_MODELS, IDP_MODELS].map(records.deleteEnded))
  return { oauth, idp }
}

function wrap(
  { alive, stamped }: Pick<SeenLogins, 'alive' | 'stamped'>,
  model: string,
  inner: Adapter,
): Adapter {
  return {
    upsert: (id, payload, expiresIn) =>
      waitingOnce(async () => {
        const saved = await stamped(model, payload, async () => inner.find(id))
        return inner.upsert(id, saved, expiresIn)
      }),
    find: (id) => waitingOnce(async () => alive(model, await inner.find(id))),
    findByUid: (uid) => waitingOnce(async () => alive(model, await inner.findByUid(uid))),
    findByUserCode: (code) =>
      waitingOnce(async () => alive(model, await inner.findByUserCode(code))),
    consume: (id) => waitingOnce(async () => inner.consume(id)),
    destroy: (id) => waitingOnce(async () => inner.destroy(id)),
    revokeByGrantId: (grantId) => waitingOnce(async () => inner.revokeByGrantId(grantId)),
  }
}

// oidc-provider takes a class or a factory; it tells them apart by the prototype, and so do we.
function asFactory(adapter: AdapterConstructor | AdapterFactory): AdapterFactory {
  return isConstructor(adapter) ? (model) => new adapter(model) : adapter
}

// An adapter may keep its data in the instance.
function onePerModel(factory: AdapterFactory): AdapterFactory {
  const made = new Map<string, Adapter>()
  return (model) => {
    const adapter = made.get(model) ?? factory(model)
    made.set(model, adapter)
    return adapter
  }
}

function isConstructor(
  adapter: AdapterConstructor | AdapterFactory,
): adapter is AdapterConstructor {
  return typeof adapter.prototype === 'object' && adapter.prototype !== null
}
