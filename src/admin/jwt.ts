import {
  createLocalJWKSet,
  createRemoteJWKSet,
  errors,
  jwtVerify,
  type JSONWebKeySet,
  type JWTPayload,
} from 'jose'
import type { Clock } from '../clock.ts'
import { scopesOf, type Verdict } from './bearer-tokens.ts'

/** How an admin's JWT is judged: RFC 7519, and RFC 9068 for its type and scope. */
export interface AdminJwtOptions {
  /** Must be its `iss`, character for character. */
  issuer: string
  /** Must be in its `aud`. */
  audience: string
  /** Algorithms of RFC 7518 that are accepted, all of them with public keys. */
  algorithms: readonly string[]
  /** The issuer's public keys, or the https address where they are. */
  keys: JSONWebKeySet | URL
  /**
   * The scope that stands for all three: `account-flows:read`, `account-flows:support` and `account-flows:settings`.
   * `account-flows:admin` by default. It must not be one of the three.
   */
  scope?: string
  /** Its `typ`; `at+jwt` by default, so that an id_token is never accepted. */
  type?: string
}

const MAX_ACTOR_LENGTH = 256
const CLOCK_TOLERANCE_S = 5
const RETRY_AFTER_MS = 1_000
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]+$/

/**
 * Judges JWTs. One that is for something else is genuine, and has none of our scopes.
 *
 * Keys come from the options alone, whatever the header of a token names (`jku`, `jwk`, `x5u`, `x5c`).
 */
export function createJwtCheck(
  options: AdminJwtOptions,
  { now }: Clock,
): (token: string) => Promise<Verdict> {
  const { issuer, audience, algorithms, keys } = options
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

  async function payloadOf(token: string): Promise<JWTPayload> {
    try {
      return (await jwtVerify(token, keyOf, expected())).payload
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
      // A token without `kid`, while the issuer has several keys.
      for await (const key of error) {
        const found = await jwtVerify(token, key, expected()).catch(unlessOfClaims)
        if (found) return found.payload
      }
      throw new errors.JWSSignatureVerificationFailed()
    }
  }

  let retryAt = 0
  // Anybody can ask for the keys; where they cannot be had, the issuer is left alone for a while.
  const isLeftAlone = () => 'fresh' in keyOf && !keyOf.fresh && now().getTime() < retryAt

  return async (token) => {
    if (!COMPACT.test(token)) return 'wrong_token'
    if (isLeftAlone()) return 'keys_unavailable'
    try {
      const { sub, scope: granted } = await payloadOf(token)
      if (typeof sub !== 'string' || sub === '') return 'wrong_token'
      const names = typeof granted === 'string' ? granted.split(' ') : []
      const actor = Array.from(`sub:${sub}`).slice(0, MAX_ACTOR_LENGTH).join('')
      return { actor, scopes: scopesOf(names, options.scope) }
    } catch (error) {
      if (ABOUT_TOKEN.test(codeOf(error))) return 'wrong_token'
      retryAt = now().getTime() + RETRY_AFTER_MS
      return 'keys_unavailable'
    }
  }
}

/** By their codes. The other errors are about the issuer's keys, or about the way to them. */
const ABOUT_TOKEN = /^ERR_(?:JWT|JWS|JOSE_ALG|JOSE_NOT|JWKS_NO)_/

const codeOf = (error: unknown) => (error instanceof errors.JOSEError ? error.code : '')

function unlessOfClaims(error: unknown): undefined {
  if (codeOf(error).startsWith('ERR_JWT_')) throw error
}
