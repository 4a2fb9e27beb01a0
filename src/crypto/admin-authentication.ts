import type { Clock } from '../clock.ts'
import { createJwtCheck, type AdminJwtOptions } from './admin-jwt.ts'
import { createBearerCheck } from './bearer-token.ts'

/** Who presented a bearer token, for the audit log; or why nobody is let in. */
export type AdminVerdict = { actor: string } | 'wrong' | 'insufficient_scope' | 'unavailable'

export type AuthenticateAdmin = (token: string) => Promise<AdminVerdict>

const MAX_ACTOR_LENGTH = 256

/** @param tokens - the fixed tokens in force; without any, and without `jwt`, nobody is let in. */
export function createAdminAuthentication(
  tokens: readonly string[],
  jwt: AdminJwtOptions | undefined,
  clock: Clock,
): AuthenticateAdmin {
  if (jwt) {
    const check = createJwtCheck(jwt, clock)
    return async (token) => {
      const verdict = await check(token)
      if (typeof verdict === 'string') return verdict
      return { actor: Array.from(`sub:${verdict.subject}`).slice(0, MAX_ACTOR_LENGTH).join('') }
    }
  }
  const isToken = createBearerCheck(tokens)
  return async (token) => (isToken(token) ? { actor: 'admin_token' } : 'wrong')
}
