import type { SessionCutoffs, SessionCutoffStore } from '../ports.ts'

/** `session_cutoffs` in memory. */
export function memoryCutoffs(): SessionCutoffStore {
  const cutoffs = new Map<string, SessionCutoffs>()

  function moveForward(accountId: string, kind: keyof SessionCutoffs, at: Date) {
    const before = cutoffs.get(accountId) ?? { idpAt: undefined, oauthAt: undefined }
    const earlier = before[kind]
    if (!earlier || earlier < at) cutoffs.set(accountId, { ...before, [kind]: at })
  }

  return {
    async read(accountId) {
      return structuredClone(cutoffs.get(accountId))
    },
    async endOAuthSessions(accountId, at) {
      moveForward(accountId, 'oauthAt', at)
    },
    async endIdpSessions(accountId, at) {
      moveForward(accountId, 'idpAt', at)
    },
  }
}
