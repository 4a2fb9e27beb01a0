import type { SessionCutoffs, SessionCutoffStore } from '../../ports/index.ts'
import { ENDS_KEPT } from '../state/cutoffs.ts'

interface Entry extends SessionCutoffs {
  /** The latest ends, so that each moves it once. */
  ends: { idpAt: string[]; oauthAt: string[] }
}

export function memoryCutoffs(): SessionCutoffStore {
  const entries = new Map<string, Entry>()

  function entryOf(accountId: string): Entry {
    const none = { idpAt: undefined, oauthAt: undefined, ends: { idpAt: [], oauthAt: [] } }
    const entry = entries.get(accountId) ?? none
    entries.set(accountId, entry)
    return entry
  }

  return {
    async read(accountId) {
      const ends = cutoffsOf(entryOf(accountId))
      return Object.values(ends).some(Boolean) ? ends : undefined
    },

    async end(accountId, kind, { id, at, isExact }) {
      const entry = entryOf(accountId)
      const [last, exact] =
        kind === 'idp' ? (['idpAt', 'exactIdpAt'] as const) : (['oauthAt', 'exactOauthAt'] as const)
      const ends = entry.ends[last]
      if (isExact) entry[exact] = moved(entry[exact], at, 0)
      else if (!ends.includes(id)) {
        entry[last] = moved(entry[last], at, 1)
        entry.ends[last] = [...ends, id].slice(-ENDS_KEPT)
      }
      return cutoffsOf(entry)
    },
  }
}

function cutoffsOf({ ends: _ends, ...cutoffs }: Entry): SessionCutoffs {
  return structuredClone(cutoffs)
}

function moved(before: Date | undefined, at: Date, byMs: number): Date {
  return new Date(Math.max(at.getTime(), before ? before.getTime() + byMs : -Infinity))
}
