/** The adapter of oidc-provider, and the end of all sessions and tokens of an account. It never knows a flow, a mail or a page. */
import type { Adapter, AdapterConstructor, AdapterFactory } from 'oidc-provider'
import type { EndedSessions, Log } from '../contract/index.ts'
import type { SessionEnd } from '../store/cutoffs.ts'
import { isJsonObject, must } from '../errors.ts'
import { accountRecords } from './account-records.ts'
import type { RecordLoggedOutClients } from './backchannel-logout.ts'
import type { OwnAdapter } from './own-adapter.ts'
import { createSeenLogins, type SeenLogins, type SeenParts } from './seen-logins.ts'

interface EndableParts extends SeenParts {
  own: OwnAdapter
  recordLoggedOutClients: RecordLoggedOutClients
  log: Log
}

export function createEndableSessions(parts: EndableParts) {
  const { own, cutoffs, recordLoggedOutClients, log } = parts
  const logins = createSeenLogins(parts)
  const factories: AdapterFactory[] = []
  const wrappers = new WeakSet<object>()

  async function cutOff(accountId: string, end: SessionEnd) {
    const records = accountRecords(factories, log, accountId)
    const [ends, endedBy] = await Promise.all([cutoffs.end(accountId, end), records.look()])
    const { counts, clients } = endedBy(ends)
    await recordLoggedOutClients(accountId, end, clients)
    return {
      ended: counts,
      // Records again, for a login that was saved between the look and the cut-off. Clients that are already recorded stay as they are.
      clear: async () => recordLoggedOutClients(accountId, end, await records.deleteEnded(ends)),
    }
  }

  return {
    ...logins,

    /** Wraps an adapter of oidc-provider, so that it never finds a record again that a cut-off ended. */
    adapter(wrapped: AdapterConstructor | AdapterFactory = own.of): AdapterFactory {
      // It may keep its data in the instance, so there is one for each model.
      const made = new Map<string, Adapter>()
      const factory = (model: string) => {
        const known = made.get(model)
        const one = known ?? (isConstructor(wrapped) ? new wrapped(model) : wrapped(model))
        made.set(model, one)
        return one
      }
      factories.push(factory)
      return (model) => {
        const outer = wrap(logins, model, factory(model))
        wrappers.add(outer)
        return outer
      }
    },

    expectOurs(adapter: object) {
      const problem = 'adapter of the provider must be flows.adapter(), or flows.adapter(yours)'
      must(wrappers.has(adapter), problem)
    },

    async end(accountId: string, end: SessionEnd): Promise<EndedSessions> {
      const { ended, clear } = await cutOff(accountId, end)
      // Records that stay are dead all the same.
      await clear().catch((error: unknown) =>
        log('error', 'ended records could not be deleted', { error: String(error) }),
      )
      return ended
    },

    cutOff,
  }
}

function wrap(
  { unlessEnded, withSeenCutoffs, failingFast }: SeenLogins,
  model: string,
  inner: Adapter,
): Adapter {
  return {
    upsert: (id, payload, expiresIn) =>
      failingFast(async () => {
        const saved = await withSeenCutoffs(model, payload, async () => inner.find(id))
        return inner.upsert(id, saved, expiresIn)
      }),
    find: (id) => failingFast(async () => unlessEnded(model, await inner.find(id))),
    findByUid: (uid) => failingFast(async () => unlessEnded(model, await inner.findByUid(uid))),
    findByUserCode: (code) =>
      failingFast(async () => unlessEnded(model, await inner.findByUserCode(code))),
    consume: (id) => failingFast(async () => inner.consume(id)),
    destroy: (id) => failingFast(async () => inner.destroy(id)),
    revokeByGrantId: (grantId) => failingFast(async () => inner.revokeByGrantId(grantId)),
  }
}

// Decides by the prototype, as oidc-provider does.
const isConstructor = (
  adapter: AdapterConstructor | AdapterFactory,
): adapter is AdapterConstructor => isJsonObject(adapter.prototype)
