import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import type { JSONWebKeySet } from 'jose'

export const ADMIN_ISSUER = 'https://issuer.example'
export const ADMIN_AUDIENCE = 'https://accounts.example/admin'
export const ADMIN_SCOPE = 'account-flows:admin'

type Part = Record<string, unknown>

/** An issuer of admin tokens: one RSA key, and what it can sign with it, be it right or not. */
export interface TokenIssuer {
  publicKey: KeyObject
  privateKey: KeyObject
  jwks: JSONWebKeySet
  /** A right token, but for these changes; `undefined` takes away. */
  token(claims?: Part, header?: Part): string
  /** The claims of a right token, with these changes. */
  claims(changes?: Part): Part
}

export function tokenIssuer(kid = 'key-1'): TokenIssuer {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const claims = (changes: Part = {}) => ({
    iss: ADMIN_ISSUER,
    aud: ADMIN_AUDIENCE,
    sub: 'operator@example.com',
    scope: ADMIN_SCOPE,
    iat: secondsFromNow(0),
    exp: secondsFromNow(600),
    ...changes,
  })
  return {
    publicKey,
    privateKey,
    jwks: { keys: [{ ...jwkOf(publicKey), kid, use: 'sig' }] },
    claims,
    token: (changes, header) =>
      compact({ alg: 'RS256', typ: 'at+jwt', kid, ...header }, claims(changes), (input) =>
        sign('sha256', input, privateKey),
      ),
  }
}

/** A JWS in compact form (RFC 7515, 7.1). */
export function compact(header: Part, payload: Part, signer: (input: Buffer) => Buffer): string {
  const input = `${encoded(header)}.${encoded(payload)}`
  return `${input}.${signer(Buffer.from(input)).toString('base64url')}`
}

export function encoded(part: unknown): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}

export function jwkOf(key: KeyObject) {
  const { kty = '', ...jwk } = key.export({ format: 'jwk' })
  return { kty, ...jwk }
}

export function secondsFromNow(seconds: number): number {
  return Math.floor(Date.now() / 1000) + seconds
}
