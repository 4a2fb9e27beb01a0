import type { AdapterPayload } from 'oidc-provider'
import { systemClock } from '../clock.ts'
import type { AccountAdapter } from './account-adapter.ts'
import { expectReplaceable, refuseReuse } from './single-use.ts'

interface Entry {
  payload: AdapterPayload
  /** Milliseconds since the epoch. */
  expiresAt: number
}

const SWEEP_MS = 60_000

/**
 * The embedded adapter: for one process, for development and tests. Unlike oidc-provider's own it can be wrapped by
 * `flows.adapter`, forgets nothing before it expires, and finds what an account has.
 */
export function memoryAdapter(clock = systemClock): (model: string) => AccountAdapter {
  const models = new Map<string, Map<string, Entry>>()
  const now = () => clock.now().getTime()
  let sweptAt = now()

  function entriesOf(model: string): Map<string, Entry> {
    const entries = models.get(model) ?? new Map<string, Entry>()
    models.set(model, entries)
    return entries
  }

  function sweep(at: number) {
    if (at - sweptAt < SWEEP_MS) return
    sweptAt = at
    for (const entries of models.values()) {
      for (const [id, { expiresAt }] of entries) if (expiresAt <= at) entries.delete(id)
    }
  }

  const factory = (model: string): AccountAdapter => {
    const entries = entriesOf(model)
    const copyOf = (entry: Entry | undefined) =>
      entry && entry.expiresAt > now() ? structuredClone(entry.payload) : undefined
    const findWhere = (matches: (payload: AdapterPayload) => boolean) =>
      copyOf([...entries.values()].find(({ payload }) => matches(payload)))

    return {
      async upsert(id, payload, expiresIn) {
        sweep(now())
        const expiresAt = expiresIn ? now() + expiresIn * 1000 : Infinity
        const former = entries.get(id)
        if (former) expectReplaceable(model, former.expiresAt <= now(), former.payload)
        entries.set(id, { payload: structuredClone(payload), expiresAt })
      },
      find: async (id) => copyOf(entries.get(id)),
      findByUid: async (uid) => findWhere((payload) => payload.uid === uid),
      findByUserCode: async (userCode) => findWhere((payload) => payload.userCode === userCode),
      async consume(id) {
        const entry = entries.get(id)
        if (entry && entry.payload.consumed === undefined) {
          entry.payload.consumed = Math.floor(now() / 1000)
        } else await refuseReuse(model, entry?.payload.grantId, factory)
      },
      async destroy(id) {
        entries.delete(id)
      },
      async revokeByGrantId(grantId) {
        for (const [id, { payload }] of entries) if (payload.grantId === grantId) entries.delete(id)
      },
      async destroyByAccountId(_accountId, isEnded) {
        const ended = [...entries].filter(([, { payload }]) => isEnded(payload))
        for (const [id] of ended) entries.delete(id)
        return ended.length
      },
    }
  }
  return factory
}
