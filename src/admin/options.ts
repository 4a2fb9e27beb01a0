import { createPublicKey } from 'node:crypto'
import type { JSONWebKeySet } from 'jose'
import { isJsonObject, must, type RefuseWeak } from '../errors.ts'
import { isInTheClear } from '../settings/addresses.ts'

/** What a token may do. No scope includes another: `read` looks, `support` acts on an account or a mail, `settings` directs the mails. */
export const ADMIN_SCOPES = [
  'account-flows:read',
  'account-flows:support',
  'account-flows:settings',
] as const

/** What a token of the admin API may do. Its name is the scope of a JWT too. */
export type AdminScope = (typeof ADMIN_SCOPES)[number]

/** The scope that stands for all three. */
const ALL_SCOPES = 'account-flows:admin'

export function scopesOf(names: readonly string[], all: string = ALL_SCOPES): AdminScope[] {
  return ADMIN_SCOPES.filter((scope) => names.includes(scope) || names.includes(all))
}

export interface ScopedToken {
  token: string
  scopes: readonly AdminScope[]
}

/** How an admin's JWT is checked: RFC 7519, and RFC 9068 for its type and scope. */
export interface AdminJwtOptions {
  /** The token's `iss` must equal it, character for character. */
  issuer: string
  /** The token's `aud` must contain it. */
  audience: string
  /** The accepted algorithms of RFC 7518. Each must use a public key. */
  algorithms: readonly string[]
  /** The issuer's public keys, or the https address where they are. */
  keys: JSONWebKeySet | URL
  /** The scope with which a token may do everything; `account-flows:admin` by default. It must not be the name of a single scope. */
  scope?: string
  /** The token's `typ`; `at+jwt` by default, so that an id_token is never accepted. */
  type?: string
}

export const MIN_ADMIN_TOKEN_LENGTH = 32

/** Only the issuer has the private key. With a shared secret, we could make tokens too. */
const ASYMMETRIC = /^(?:(?:RS|PS)(?:256|384|512)|ES(?:256|384|512)|EdDSA|Ed25519)$/

/** A fixed token; a plain string may do everything. */
export type AdminToken =
  string | { token: string; scopes: readonly (AdminScope | typeof ALL_SCOPES)[] }

interface AdminOptions {
  adminToken?: AdminToken | readonly AdminToken[] | undefined
  adminJwt?: AdminJwtOptions
}

/** Checks who may use the admin API. Only one of the two ways is allowed, so that the other is not forgotten. */
export function checkAdmin({ adminToken, adminJwt }: AdminOptions, weak: RefuseWeak) {
  must(adminToken === undefined || adminJwt === undefined, 'give adminToken or adminJwt, not both')
  return {
    adminTokens: checkTokens(adminToken, weak),
    adminJwt: adminJwt === undefined ? undefined : checkJwt(adminJwt),
  }
}

function checkTokens(given: AdminOptions['adminToken'], weak: RefuseWeak): readonly ScopedToken[] {
  const tokens = given === undefined ? [] : [given].flat().map(withScopes)
  const texts = new Set(tokens.map(({ token }) => token))
  must(texts.size === tokens.length, 'adminToken must not have the same token twice')
  if (tokens.some(({ token }) => token.length < MIN_ADMIN_TOKEN_LENGTH))
    weak(`adminToken must have ${MIN_ADMIN_TOKEN_LENGTH} characters or more`)
  return tokens
}

const SCOPE_NAMES: readonly unknown[] = [...ADMIN_SCOPES, ALL_SCOPES]

function withScopes(given: AdminToken): ScopedToken {
  const { token, scopes } =
    typeof given === 'string' ? { token: given, scopes: [ALL_SCOPES] } : Object(given)
  must(isVisible(token), `adminToken ${VISIBLE}`)
  const isNamed = (scope: unknown) => SCOPE_NAMES.includes(scope)
  must(
    Array.isArray(scopes) && scopes.length > 0 && scopes.every(isNamed),
    `adminToken.scopes must have at least one of ${SCOPE_NAMES.join(', ')}, and nothing else`,
  )
  return { token, scopes: scopesOf(scopes) }
}

function checkJwt(options: AdminJwtOptions): AdminJwtOptions {
  must(isJsonObject(options), 'adminJwt must be an object')
  const { issuer, audience, algorithms, keys, scope, type } = options
  must(isText(issuer), 'adminJwt.issuer must be a text, and not empty')
  must(isText(audience), 'adminJwt.audience must be a text, and not empty')
  must(scope === undefined || isVisible(scope), `adminJwt.scope ${VISIBLE}`)
  must(type === undefined || isVisible(type), `adminJwt.type ${VISIBLE}`)
  const isOwn = ADMIN_SCOPES.every((one) => one !== scope)
  must(isOwn, 'adminJwt.scope must not be one of the three scopes: it stands for all of them')
  const isSome = Array.isArray(algorithms) && algorithms.length > 0
  must(isSome, 'adminJwt.algorithms must name at least one algorithm')
  for (const one of algorithms) {
    const problem = `adminJwt.algorithms: ${String(one)} is not an algorithm with public keys`
    must(ASYMMETRIC.test(one), problem)
  }
  checkKeys(keys)
  return { ...options, algorithms: [...algorithms] }
}

function checkKeys(keys: AdminJwtOptions['keys']): void {
  if (keys instanceof URL) {
    const isSafe = /^https?:$/.test(keys.protocol) && !isInTheClear(keys)
    must(isSafe, 'adminJwt.keys must be an https address: over http others could replace the keys')
    return
  }
  const list: unknown = Reflect.get(Object(keys), 'keys')
  const isSet = Array.isArray(list) && list.length > 0
  must(isSet, 'adminJwt.keys must be a JWK Set with keys, or a URL')
  const problem = 'adminJwt.keys must hold only public keys: each readable, without a private part'
  must(list.every(isPublicKey), problem)
}

const PRIVATE = ['d', 'k', 'p', 'q', 'dp', 'dq', 'qi', 'oth']

function isPublicKey(key: unknown): boolean {
  if (!isJsonObject(key) || PRIVATE.some((member) => member in key)) return false
  try {
    createPublicKey({ key: { ...key }, format: 'jwk' })
    return true
  } catch {
    return false
  }
}

const VISIBLE = 'must be ASCII without spaces, and not empty'
const isText = (value: unknown) => typeof value === 'string' && value !== ''
const isVisible = (value: unknown): value is string =>
  typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)
