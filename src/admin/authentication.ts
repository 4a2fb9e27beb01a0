import type { Context } from 'koa'
import { newId } from '../crypto/token.ts'
import { isStoreUnavailable } from '../errors.ts'
import { networkOf } from '../http/requester.ts'
import { createTokenCheck, type Admin, type AdminScope } from './bearer-tokens.ts'
import { createJwtCheck } from './jwt.ts'
import { refusal, type AdminParts, type Problem } from './operation.ts'

const MINUTE_MS = 60_000
const FAILURES_PER_MINUTE = 60
const REALM = 'Bearer realm="account-flows"'

type Failure =
  | { reason: 'no_token' | 'wrong_token' | 'keys_unavailable' }
  | { reason: 'insufficient_scope'; details: { actor: string; scope: AdminScope } }

/**
 * Lets in whoever shows a right bearer token (5.1) with the scope that is needed, and refuses all others. Failures are limited
 * by network; a right token is let in all the same, so that nobody can lock the admins out.
 */
export function createAdminAuth(parts: AdminParts) {
  const { options, store, audit, clock, log } = parts
  const { adminTokens, adminJwt } = options
  const judge = adminJwt ? createJwtCheck(adminJwt, clock) : createTokenCheck(adminTokens)

  /** How many seconds the network has to wait; none: it is within the limit. */
  async function count(ctx: Context, failure: Failure): Promise<number | undefined> {
    const requester = parts.requesterOf(ctx.req)
    const key = `admin_failures:${networkOf(requester.address)}`
    const { count, msToEnd } = await store.limits.hit(key, MINUTE_MS, FAILURES_PER_MINUTE)
    const event = { id: newId(), type: 'admin_auth_failed', at: clock.now(), ...requester } as const
    if (count <= FAILURES_PER_MINUTE) {
      await audit({ ...event, ...failure })
      return undefined
    }
    if (count === FAILURES_PER_MINUTE + 1) await audit({ ...event, reason: 'too_many_requests' })
    return Math.max(1, Math.ceil(msToEnd / 1000))
  }

  // Whoever is wrong is told so, be the database there or not.
  function unlessAway(error: unknown): undefined {
    if (!isStoreUnavailable(error)) throw error
    const message = 'a failed admin authentication was not recorded'
    log('error', message, { code: 'ERR_STORE_UNAVAILABLE' })
  }

  async function refused(ctx: Context, failure: Failure): Promise<Problem> {
    const waitSeconds = await count(ctx, failure).catch(unlessAway)
    if (waitSeconds !== undefined) {
      ctx.set('Retry-After', String(waitSeconds))
      const title = 'Too many requests with a wrong token. Wait.'
      return refusal(429, 'too_many_requests', title)
    }
    if (failure.reason === 'keys_unavailable') {
      log('error', 'the keys for admin tokens cannot be fetched from their issuer (adminJwt.keys)')
      ctx.set('Retry-After', '60')
      return refusal(503, 'unavailable', 'The keys to check this token cannot be fetched.')
    }
    if (failure.reason === 'insufficient_scope') {
      const { scope } = failure.details
      // RFC 6750, 3.1.
      ctx.set('WWW-Authenticate', `${REALM}, error="insufficient_scope", scope="${scope}"`)
      return refusal(403, 'forbidden', `This token lacks the scope ${scope}.`)
    }
    const error = failure.reason === 'no_token' ? '' : ', error="invalid_token"'
    ctx.set('WWW-Authenticate', `${REALM}${error}`)
    const title = 'Send the bearer token of an admin: Authorization: Bearer <token>.'
    return refusal(401, 'unauthorized', title)
  }

  return async (ctx: Context, scope: AdminScope | undefined): Promise<Admin | Problem> => {
    const [, token] = /^Bearer +([\x21-\x7e]+)$/i.exec(ctx.get('Authorization')) ?? []
    const verdict = token === undefined ? 'no_token' : await judge(token)
    if (typeof verdict === 'string') return refused(ctx, { reason: verdict })
    const { actor, scopes } = verdict
    if (scope === undefined || scopes.includes(scope)) return verdict
    return refused(ctx, { reason: 'insufficient_scope', details: { actor, scope } })
  }
}
