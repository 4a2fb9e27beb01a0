import { ADMIN_SCOPES, type AdminScope } from './scopes.ts'
import type { Clock } from '../clock.ts'
import { createJwtCheck, type AdminJwtOptions } from './jwt.ts'
import { createBearerCheck } from './bearer-token.ts'

/** A fixed token, and what it may do. */
export interface ScopedToken {
  token: string
  scopes: readonly AdminScope[]
}

export interface Admin {
  /** For the audit log. */
  actor: string
  scopes: readonly AdminScope[]
}

/** Who presented a bearer token, and what it may do; or why nobody is let in. */
export type AdminVerdict = Admin | 'wrong' | 'unavailable'

export type AuthenticateAdmin = (token: string) => Promise<AdminVerdict>

const MAX_ACTOR_LENGTH = 256

/** @param tokens - the fixed tokens in force; without any, and without `jwt`, nobody is let in. */
export function createAdminAuthentication(
  tokens: readonly ScopedToken[],
  jwt: AdminJwtOptions | undefined,
  clock: Clock,
): AuthenticateAdmin {
  if (jwt) {
    const check = createJwtCheck(jwt, clock)
    return async (token) => {
      const verdict = await check(token)
      if (typeof verdict === 'string') return verdict
      const { subject, scopes } = verdict
      return { actor: Array.from(`sub:${subject}`).slice(0, MAX_ACTOR_LENGTH).join(''), scopes }
    }
  }
  const find = createBearerCheck(tokens.map(({ token, scopes }) => [token, scopes]))
  return async (token) => {
    const [scopes] = find(token)
    return scopes ? { actor: actorWith(scopes), scopes } : 'wrong'
  }
}

/** Fixed tokens have no names; a lesser one is told by what it may do. */
function actorWith(scopes: readonly AdminScope[]): string {
  if (scopes.length === ADMIN_SCOPES.length) return 'admin_token'
  return `admin_token:${scopes.map((scope) => scope.replace('account-flows:', '')).join('+')}`
}
