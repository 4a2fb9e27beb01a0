import type { SessionCutoffs, SessionCutoffStore } from '../ports.ts'

/** How many passwords an account can be rid of while one login is on its way. */
export const KEPT_PASSWORDS = 10

interface Entry {
  idp: Ended
  oauth: Ended
  loginAt: Date | undefined
}

interface Ended {
  at: Date | undefined
  passwords: string[]
}

/** `session_cutoffs` in memory. */
export function memoryCutoffs(): SessionCutoffStore {
  const entries = new Map<string, Entry>()

  function entryOf(accountId: string): Entry {
    const entry = entries.get(accountId) ?? {
      idp: { at: undefined, passwords: [] },
      oauth: { at: undefined, passwords: [] },
      loginAt: undefined,
    }
    entries.set(accountId, entry)
    return entry
  }

  function read(accountId: string): SessionCutoffs | undefined {
    const entry = entryOf(accountId)
    return entry.idp.at || entry.oauth.at ? cutoffsOf(entry) : undefined
  }

  const end =
    (kind: 'idp' | 'oauth') =>
    async (accountId: string, at: Date, endedPassword?: string): Promise<SessionCutoffs> => {
      const entry = entryOf(accountId)
      const ended = entry[kind]
      const isKept = endedPassword !== undefined && ended.passwords.includes(endedPassword)
      const isRepeated = isKept && ended.at !== undefined && at <= ended.at
      if (!isRepeated) ended.at = latest(ended.at, at, entry.loginAt)
      if (endedPassword !== undefined && !isKept) {
        ended.passwords = [endedPassword, ...ended.passwords].slice(0, KEPT_PASSWORDS)
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
    endOAuthSessions: end('oauth'),
    endIdpSessions: end('idp'),
  }
}

function cutoffsOf({ idp, oauth }: Entry): SessionCutoffs {
  const endedPasswords = [...new Set([...oauth.passwords, ...idp.passwords])]
  return structuredClone({ idpAt: idp.at, oauthAt: oauth.at, endedPasswords })
}

function latest(...times: (Date | undefined)[]): Date {
  const known = times.filter((time) => time !== undefined)
  return new Date(Math.max(...known.map((time) => time.getTime())))
}
