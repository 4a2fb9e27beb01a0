import type { SessionCutoffs, SessionCutoffStore } from '../../ports/index.ts'

interface Entry extends SessionCutoffs {
  loginAt: Date | undefined
  /** The latest time that each was asked to end up to. */
  asked: { idpAt?: Date; oauthAt?: Date }
}

/** `session_cutoffs` in memory. */
export function memoryCutoffs(): SessionCutoffStore {
  const entries = new Map<string, Entry>()

  function entryOf(accountId: string): Entry {
    const none = { idpAt: undefined, oauthAt: undefined, loginAt: undefined, asked: {} }
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
      const noted = isExact ? undefined : entry.loginAt
      if (!isRepeated) entry[kind] = latest(entry[kind], at, noted)
      entry.asked[kind] = at
      return cutoffsOf(entry)
    }

  return {
    read: async (accountId) => read(accountId),
    async noteLogin(accountId, at) {
      const entry = entryOf(accountId)
      entry.loginAt = latest(entry.loginAt, at)
      return read(accountId)
    },
    endOAuthSessions: end('oauthAt'),
    endIdpSessions: end('idpAt'),
  }
}

function cutoffsOf({ idpAt, oauthAt }: Entry): SessionCutoffs {
  return structuredClone({ idpAt, oauthAt })
}

function latest(...times: (Date | undefined)[]): Date {
  const known = times.filter((time) => time !== undefined)
  return new Date(Math.max(...known.map((time) => time.getTime())))
}
