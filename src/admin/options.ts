import { createPublicKey } from 'node:crypto'
import {
  ADMIN_SCOPES,
  ALL_SCOPES,
  scopesOf,
  type AdminScope,
  type ScopedToken,
} from './bearer-tokens.ts'
import type { AdminJwtOptions } from './jwt.ts'
import { isInTheClear } from '../settings/loopback-host.ts'

export const MIN_ADMIN_TOKEN_LENGTH = 32

/** Signed with a private key that only the issuer has: a shared secret would let whoever checks a token make one. */
const ASYMMETRIC = /^(?:(?:RS|PS)(?:256|384|512)|ES(?:256|384|512)|EdDSA|Ed25519)$/

/** A fixed token; a text alone may do everything. */
export type AdminToken =
  string | { token: string; scopes: readonly (AdminScope | typeof ALL_SCOPES)[] }

interface AdminOptions {
  adminToken?: AdminToken | readonly AdminToken[] | undefined
  adminJwt?: AdminJwtOptions
}

/** Who may use the admin API: one of the two ways, so that nobody forgets the other. */
export function checkAdmin(
  { adminToken, adminJwt }: AdminOptions,
  weak: (problem: string) => void,
): { adminTokens: readonly ScopedToken[]; adminJwt: AdminJwtOptions | undefined } {
  if (adminToken !== undefined && adminJwt !== undefined) {
    throw new TypeError('give adminToken or adminJwt, not both')
  }
  return {
    adminTokens: checkTokens(adminToken, weak),
    adminJwt: adminJwt === undefined ? undefined : checkJwt(adminJwt),
  }
}

function checkTokens(
  given: AdminOptions['adminToken'],
  weak: (problem: string) => void,
): readonly ScopedToken[] {
  const tokens = given === undefined ? [] : [given].flat().map(withScopes)
  if (new Set(tokens.map(({ token }) => token)).size < tokens.length) {
    throw new TypeError('adminToken must not have the same token twice')
  }
  for (const { token } of tokens) {
    if (token.length < MIN_ADMIN_TOKEN_LENGTH) {
      weak(`adminToken must have ${MIN_ADMIN_TOKEN_LENGTH} characters or more`)
    }
  }
  return tokens
}

const SCOPE_NAMES: readonly unknown[] = [...ADMIN_SCOPES, ALL_SCOPES]

function withScopes(given: AdminToken): ScopedToken {
  const { token, scopes } =
    typeof given === 'string' ? { token: given, scopes: [ALL_SCOPES] } : Object(given)
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token)) {
    throw new TypeError('adminToken must be ASCII without spaces, and not empty')
  }
  if (
    !Array.isArray(scopes) ||
    scopes.length === 0 ||
    !scopes.every((scope) => SCOPE_NAMES.includes(scope))
  ) {
    throw new TypeError(
      `adminToken.scopes must have at least one of ${SCOPE_NAMES.join(', ')}, and nothing else`,
    )
  }
  return { token, scopes: scopesOf(scopes) }
}

function checkJwt(options: AdminJwtOptions): AdminJwtOptions {
  if (!isObject(options)) throw new TypeError('adminJwt must be an object')
  const { issuer, audience, algorithms, keys } = options
  for (const name of ['issuer', 'audience'] as const) {
    if (typeof options[name] !== 'string' || options[name] === '') {
      throw new TypeError(`adminJwt.${name} must be a text, and not empty`)
    }
  }
  for (const name of ['scope', 'type'] as const) {
    const given: unknown = options[name]
    if (given !== undefined && !(typeof given === 'string' && /^[\x21-\x7e]+$/.test(given))) {
      throw new TypeError(`adminJwt.${name} must be ASCII without spaces, and not empty`)
    }
  }
  if (ADMIN_SCOPES.some((scope) => scope === options.scope)) {
    throw new TypeError(
      'adminJwt.scope must not be one of the three scopes: it stands for all of them',
    )
  }
  if (!Array.isArray(algorithms) || algorithms.length === 0) {
    throw new TypeError('adminJwt.algorithms must name at least one algorithm')
  }
  for (const algorithm of algorithms) {
    if (!ASYMMETRIC.test(algorithm)) {
      throw new TypeError(
        `adminJwt.algorithms: ${String(algorithm)} is not an algorithm with public keys`,
      )
    }
  }
  return { ...options, issuer, audience, algorithms: [...algorithms], keys: checkKeys(keys) }
}

function checkKeys(keys: AdminJwtOptions['keys']): AdminJwtOptions['keys'] {
  if (keys instanceof URL) {
    if (/^https?:$/.test(keys.protocol) && !isInTheClear(keys)) return keys
    throw new TypeError(
      'adminJwt.keys must be an https address: over http others could replace the keys',
    )
  }
  const list: unknown = Reflect.get(Object(keys), 'keys')
  if (!Array.isArray(list) || list.length === 0) {
    throw new TypeError('adminJwt.keys must be a JWK Set with keys, or a URL')
  }
  if (!list.every(isPublicKey)) {
    throw new TypeError(
      'adminJwt.keys must hold only public keys: each readable, without a private part',
    )
  }
  return keys
}

const PRIVATE = ['d', 'k', 'p', 'q', 'dp', 'dq', 'qi', 'oth']

function isPublicKey(key: unknown): boolean {
  if (!isObject(key) || PRIVATE.some((member) => member in key)) return false
  try {
    createPublicKey({ key: { ...key }, format: 'jwk' })
    return true
  } catch {
    return false
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
