import type { SessionCutoffs, SessionCutoffStore, SessionEnd } from '../../ports/index.ts'
import { ENDS_KEPT } from '../state/cutoffs.ts'

interface Entry extends SessionCutoffs {
  /** The latest ends, so that each moves it once. */
  ends: { idpAt: string[]; oauthAt: string[] }
}

/** `session_cutoffs` in memory. */
export function memoryCutoffs(): SessionCutoffStore {
  const entries = new Map<string, Entry>()

  function entryOf(accountId: string): Entry {
    const none = { idpAt: undefined, oauthAt: undefined, ends: { idpAt: [], oauthAt: [] } }
    const entry = entries.get(accountId) ?? none
    entries.set(accountId, entry)
    return entry
  }

  function read(accountId: string): SessionCutoffs | undefined {
    const entry = entryOf(accountId)
    const ends = cutoffsOf(entry)
    return Object.values(ends).some(Boolean) ? ends : undefined
  }

  const end =
    (kind: 'idpAt' | 'oauthAt') =>
    async (accountId: string, { id, at, isExact }: SessionEnd): Promise<SessionCutoffs> => {
      const entry = entryOf(accountId)
      const ends = entry.ends[kind]
      const exact = kind === 'idpAt' ? 'exactIdpAt' : 'exactOauthAt'
      if (isExact) entry[exact] = moved(entry[exact], at, 0)
      else if (!ends.includes(id)) {
        entry[kind] = moved(entry[kind], at, 1)
        entry.ends[kind] = [...ends, id].slice(-ENDS_KEPT)
      }
      return cutoffsOf(entry)
    }

  return {
    read: async (accountId) => read(accountId),
    endOAuthSessions: end('oauthAt'),
    endIdpSessions: end('idpAt'),
  }
}

function cutoffsOf({ ends: _ends, ...cutoffs }: Entry): SessionCutoffs {
  return structuredClone(cutoffs)
}

function moved(before: Date | undefined, at: Date, byMs: number): Date {
  return new Date(Math.max(at.getTime(), before ? before.getTime() + byMs : -Infinity))
}
