import type { SessionCutoffs, SessionCutoffStore } from '../ports.ts'

/** How many passwords an account can be rid of while one login is on its way. */
export const KEPT_PASSWORDS = 10

interface Entry extends SessionCutoffs {
  loginAt: Date | undefined
}

/** `session_cutoffs` in memory. */
export function memoryCutoffs(): SessionCutoffStore {
  const entries = new Map<string, Entry>()

  function entryOf(accountId: string): Entry {
    const entry = entries.get(accountId) ?? {
      idpAt: undefined,
      oauthAt: undefined,
      loginAt: undefined,
    }
    entries.set(accountId, entry)
    return entry
  }

  function read(accountId: string): SessionCutoffs | undefined {
    const entry = entryOf(accountId)
    return entry.idpAt || entry.oauthAt ? cutoffsOf(entry) : undefined
  }

  const end =
    (kind: 'idpAt' | 'oauthAt') =>
    async (accountId: string, at: Date, endedPassword?: string): Promise<SessionCutoffs> => {
      const entry = entryOf(accountId)
      entry[kind] = latest(entry[kind], at, entry.loginAt)
      if (endedPassword !== undefined) {
        const kept = [endedPassword, ...(entry.endedPasswords ?? [])]
        entry.endedPasswords = kept.slice(0, KEPT_PASSWORDS)
      }
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

function cutoffsOf({ idpAt, oauthAt, endedPasswords }: Entry): SessionCutoffs {
  return structuredClone({ idpAt, oauthAt, ...(endedPasswords && { endedPasswords }) })
}

function latest(...times: (Date | undefined)[]): Date {
  const known = times.filter((time) => time !== undefined)
  return new Date(Math.max(...known.map((time) => time.getTime())))
}
