/** Checks the token of each request, and refuses wrong ones. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createLocalJWKSet, createRemoteJWKSet, errors, jwtVerify, type JWTPayload } from 'jose'
import type { Context } from 'koa'
import type { Clock } from '../clock.ts'
import { newId } from '../crypto/token.ts'
import { isStoreUnavailable } from '../errors.ts'
import { networkOf, requesterOf } from '../http/requester.ts'
import { refusal, type AdminParts, type Problem } from './operation.ts'
import {
  ADMIN_SCOPES,
  scopesOf,
  type AdminJwtOptions,
  type AdminScope,
  type ScopedToken,
} from './options.ts'

/**
 * Checks fixed tokens; `actor` names one for the audit log. Its time shows neither their content,
 * nor their length, nor which one matches. Without tokens, it refuses all.
 */
export function createTokenCheck(tokens: readonly ScopedToken[]) {
  const expected = tokens.map(({ token, scopes }) => ({ hash: digest(token), scopes }))
  return async (presented: string) => {
    const given = digest(presented)
    const [scopes] = expected.flatMap(({ hash, scopes }) =>
      timingSafeEqual(given, hash) ? [scopes] : [],
    )
    return scopes ? { actor: actorWith(scopes), scopes } : 'wrong_token'
  }
}

/** Fixed tokens have no names. A token that lacks a scope is named by the scopes that it has. */
function actorWith(scopes: readonly AdminScope[]): string {
  if (scopes.length === ADMIN_SCOPES.length) return 'admin_token'
  return `admin_token:${scopes.map((scope) => scope.replace('account-flows:', '')).join('+')}`
}

const digest = (token: string) => createHash('sha256').update(token).digest()

const MAX_ACTOR_LENGTH = 256
const CLOCK_TOLERANCE_S = 5
const RETRY_AFTER_MS = 1_000
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/

/**
 * Checks JWTs. A genuine one that is for something else is accepted, but has none of our scopes. `wrong_token`: it is not for this service,
 * or not valid now. `keys_unavailable`: the issuer's keys cannot be fetched.
 */
function createJwtCheck(options: AdminJwtOptions, { now }: Clock) {
  const { issuer, audience, algorithms, keys } = options
  // Keys come only from the options, whatever keys the header of a token names (`jku`, `jwk`, `x5u`, `x5c`).
  const keyOf = keys instanceof URL ? createRemoteJWKSet(keys) : createLocalJWKSet(keys)
  const expected = () => ({
    issuer,
    audience,
    algorithms: [...algorithms],
    typ: options.type ?? 'at+jwt',
    requiredClaims: ['exp', 'sub'],
    clockTolerance: CLOCK_TOLERANCE_S,
    currentDate: now(),
  })

  /** `undefined`: no key of the issuer accepts it. */
  async function payloadOf(token: string): Promise<JWTPayload | undefined> {
    try {
      return (await jwtVerify(token, keyOf, expected())).payload
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
      // A token without `kid`, while the issuer has several keys.
      for await (const key of error) {
        const found = await jwtVerify(token, key, expected()).catch(() => undefined)
        if (found) return found.payload
      }
      return undefined
    }
  }

  let retryAt = 0
  // Any caller, also a stranger, makes us fetch the keys. If that fails, we leave the issuer alone for a while.
  const isLeftAlone = () => 'fresh' in keyOf && !keyOf.fresh && now().getTime() < retryAt

  return async (token: string) => {
    if (!COMPACT.test(token)) return 'wrong_token'
    if (isLeftAlone()) return 'keys_unavailable'
    try {
      const { sub, scope: granted } = (await payloadOf(token)) ?? {}
      if (typeof sub !== 'string' || sub === '') return 'wrong_token'
      const names = typeof granted === 'string' ? granted.split(' ') : []
      const actor = Array.from(`sub:${sub}`).slice(0, MAX_ACTOR_LENGTH).join('')
      return { actor, scopes: scopesOf(names, options.scope) }
    } catch (error) {
      if (error instanceof errors.JOSEError && ABOUT_TOKEN.test(error.code)) return 'wrong_token'
      retryAt = now().getTime() + RETRY_AFTER_MS
      return 'keys_unavailable'
    }
  }
}

/** Codes of errors about the token. Other errors are about the issuer's keys, or about the way to them. */
const ABOUT_TOKEN = /^ERR_(?:JWT|JWS|JOSE_ALG|JOSE_NOT|JWKS_NO)_/

const MINUTE_MS = 60_000
const FAILURES_PER_MINUTE = 60
const REALM = 'Bearer realm="account-flows"'

type Failure =
  | { reason: 'no_token' | 'wrong_token' | 'keys_unavailable' }
  | { reason: 'insufficient_scope'; details: { actor: string; scope: AdminScope } }

/** Lets in requests with a right bearer token (5.1) and scope. The limit of failures stops no right token, so that it locks no admin out. */
export function createAdminAuth(parts: AdminParts) {
  const { options, store, audit, clock, log } = parts
  const { adminTokens, adminJwt, trustedProxies } = options
  const checkToken = adminJwt ? createJwtCheck(adminJwt, clock) : createTokenCheck(adminTokens)

  /** Counts a failure. Answers how many seconds the network has to wait; `undefined`: it is within the limit. */
  async function count(ctx: Context, failure: Failure): Promise<number | undefined> {
    const requester = requesterOf(ctx.req, trustedProxies)
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

  async function refused(ctx: Context, failure: Failure): Promise<Problem> {
    // A wrong token is refused even while the database is away.
    const waitSeconds = await count(ctx, failure).catch((error: unknown) => {
      if (!isStoreUnavailable(error)) throw error
      const message = 'a failed admin authentication was not recorded'
      log('error', message, { code: 'ERR_STORE_UNAVAILABLE' })
      return undefined
    })
    if (waitSeconds !== undefined) {
      ctx.set('Retry-After', String(waitSeconds))
      return refusal(429, 'too_many_requests', 'Too many requests with a wrong token. Wait.')
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

  return async (ctx: Context, scope: AdminScope | undefined) => {
    const [, token] = /^Bearer +([\x21-\x7e]+)$/i.exec(ctx.get('Authorization')) ?? []
    const verdict = token === undefined ? 'no_token' : await checkToken(token)
    if (typeof verdict === 'string') return refused(ctx, { reason: verdict })
    const { actor, scopes } = verdict
    if (scope === undefined || scopes.includes(scope)) return verdict
    return refused(ctx, { reason: 'insufficient_scope', details: { actor, scope } })
  }
}
