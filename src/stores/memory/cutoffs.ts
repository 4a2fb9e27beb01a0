import type { SessionCutoffs, SessionCutoffStore } from '../../ports/index.ts'

interface Entry extends SessionCutoffs {
  /** The latest time that each was asked to end up to. */
  asked: { idpAt?: Date; oauthAt?: Date }
}

/** `session_cutoffs` in memory. */
export function memoryCutoffs(): SessionCutoffStore {
  const entries = new Map<string, Entry>()

  function entryOf(accountId: string): Entry {
    const none = { idpAt: undefined, oauthAt: undefined, asked: {} }
    const entry = entries.get(accountId) ?? none
    entries.set(accountId, entry)
    return entry
  }

  function read(accountId: string): SessionCutoffs | undefined {
    const entry = entryOf(accountId)
    return entry.idpAt || entry.oauthAt ? cutoffsOf(entry) : undefined
  }

  const end =
    (kind: 'idpAt' | 'oauthAt') =>
    async (accountId: string, at: Date, isExact = false): Promise<SessionCutoffs> => {
      const entry = entryOf(accountId)
      const isRepeated = entry.asked[kind]?.getTime() === at.getTime()
      if (!isRepeated) entry[kind] = moved(entry[kind], at, isExact ? 0 : 1)
      entry.asked[kind] = at
      return cutoffsOf(entry)
    }

  return {
    read: async (accountId) => read(accountId),
    endOAuthSessions: end('oauthAt'),
    endIdpSessions: end('idpAt'),
  }
}

function cutoffsOf({ idpAt, oauthAt }: Entry): SessionCutoffs {
  return structuredClone({ idpAt, oauthAt })
}

function moved(before: Date | undefined, at: Date, byMs: number): Date {
  return new Date(Math.max(at.getTime(), before ? before.getTime() + byMs : -Infinity))
}
