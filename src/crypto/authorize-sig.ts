import { createHmac, timingSafeEqual } from 'node:crypto'
import type { CarriedParameters } from '../ports/index.ts'
import type { DerivedKey, KeyRing } from './keys.ts'

export type AuthorizeSig = ReturnType<typeof createAuthorizeSig>

/**
 * `authorize_sig` (5.4): HMAC-SHA-256 over the token and the carried parameters of a verification link, base64url.
 * Changing, adding or removing any of them is noticed; the order in the link does not matter.
 */
export function createAuthorizeSig(keys: KeyRing) {
  return {
    sign: (token: string, carried: CarriedParameters) =>
      hmac(keys('authorize_sig')[0], signedText(token, carried)).toString('base64url'),

    /** True when any key of the ring signed exactly this token with exactly these parameters. */
    verify(signature: string, token: string, carried: CarriedParameters) {
      if (!/^[A-Za-z0-9_-]{43}$/.test(signature)) return false
      const presented = Buffer.from(signature, 'base64url')
      if (presented.toString('base64url') !== signature) return false
      const text = signedText(token, carried)
      return keys('authorize_sig').some((key) => timingSafeEqual(hmac(key, text), presented))
    },
  }
}

function hmac(key: DerivedKey, text: string): Buffer {
  return createHmac('sha256', key.bytes).update(text).digest()
}

// A JSON array of fixed order keeps every boundary, and null is not the empty string.
function signedText(token: string, { clientId, redirectUri, scope, state }: CarriedParameters) {
  return JSON.stringify([token, clientId, redirectUri, scope, state].map((value) => value ?? null))
}
