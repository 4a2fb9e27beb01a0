import type { Context } from 'koa'
import type { AdminParts } from './operation.ts'
import { createTokenCheck, type Admin, type AdminScope } from './bearer-tokens.ts'
import { createJwtCheck } from './jwt.ts'
import { newId } from '../crypto/token.ts'
import { isStoreUnavailable } from '../errors.ts'
import type { Requester } from '../ports/index.ts'
import { networkOf } from '../http/requester.ts'
import { showProblem } from '../http/failure.ts'

const MINUTE_MS = 60_000
const FAILURES_PER_MINUTE = 60
const REALM = 'Bearer realm="account-flows"'

/**
 * Lets in whoever shows a right bearer token (5.1) with the scope that is needed, and answers all others. Failures are limited
 * by network; a right token is let in all the same, so that nobody can lock the admins out.
 *
 * @returns who it is; `undefined`: it is answered.
 */
export function createAdminAuth(parts: AdminParts) {
  const { options, store, audit, clock, log } = parts
  const { adminTokens, adminJwt } = options
  const judge = adminJwt ? createJwtCheck(adminJwt, clock) : createTokenCheck(adminTokens)
  type Refusal =
    | { reason: 'no_token' | 'wrong_token' | 'keys_unavailable'; details?: undefined }
    | { reason: 'insufficient_scope'; details: { actor: string; scope: AdminScope } }

  /** How many seconds the network has to wait; none: it is within the limit. */
  async function count(requester: Requester, refusal: Refusal): Promise<number | undefined> {
    const key = `admin_failures:${networkOf(requester.address)}`
    const { count, msToEnd } = await store.limits.hit(key, MINUTE_MS, FAILURES_PER_MINUTE)
    const event = { id: newId(), type: 'admin_auth_failed', at: clock.now(), ...requester } as const
    if (count <= FAILURES_PER_MINUTE) {
      await audit({ ...event, ...refusal })
      return undefined
    }
    if (count === FAILURES_PER_MINUTE + 1) await audit({ ...event, reason: 'too_many_requests' })
    return Math.max(1, Math.ceil(msToEnd / 1000))
  }

  // Whoever is wrong is told so, be the database there or not.
  async function countWhereStored(ctx: Context, refusal: Refusal) {
    try {
      return await count(parts.requesterOf(ctx.req), refusal)
    } catch (error) {
      if (!isStoreUnavailable(error)) throw error
      log('error', 'a failed admin authentication was not recorded', {
        code: 'ERR_STORE_UNAVAILABLE',
      })
      return undefined
    }
  }

  async function refuse(ctx: Context, refusal: Refusal) {
    const waitSeconds = await countWhereStored(ctx, refusal)
    const { reason, details } = refusal
    if (waitSeconds !== undefined) {
      ctx.set('Retry-After', String(waitSeconds))
      showProblem(ctx, 429, 'too_many_requests', 'Too many requests with a wrong token. Wait.')
    } else if (reason === 'keys_unavailable') {
      log('error', 'the keys for admin tokens cannot be fetched from their issuer (adminJwt.keys)')
      ctx.set('Retry-After', '60')
      showProblem(ctx, 503, 'unavailable', 'The keys to check this token cannot be fetched.')
    } else if (details) {
      // RFC 6750, 3.1.
      ctx.set('WWW-Authenticate', `${REALM}, error="insufficient_scope", scope="${details.scope}"`)
      showProblem(ctx, 403, 'forbidden', `This token lacks the scope ${details.scope}.`)
    } else {
      ctx.set('WWW-Authenticate', reason === 'no_token' ? REALM : `${REALM}, error="invalid_token"`)
      const title = 'Send the bearer token of an admin: Authorization: Bearer <token>.'
      showProblem(ctx, 401, 'unauthorized', title)
    }
  }

  return async (ctx: Context, scope: AdminScope | undefined): Promise<Admin | undefined> => {
    const [, token] = /^Bearer +([\x21-\x7e]+)$/i.exec(ctx.get('Authorization')) ?? []
    const verdict = token === undefined ? 'no_token' : await judge(token)
    if (typeof verdict === 'string') {
      await refuse(ctx, { reason: verdict })
    } else if (scope !== undefined && !verdict.scopes.includes(scope)) {
      await refuse(ctx, { reason: 'insufficient_scope', details: { actor: verdict.actor, scope } })
    } else return verdict
    return undefined
  }
}
