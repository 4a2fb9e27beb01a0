import { createHmac, timingSafeEqual } from 'node:crypto'
import type { CarriedParameters } from '../contract/index.ts'
import type { DerivedKey, KeyRing } from './keys.ts'

export type AuthorizeSig = ReturnType<typeof createAuthorizeSig>

/** `authorize_sig` (5.4): HMAC-SHA-256 over the token and all carried parameters of a verification link, whatever their order in it. */
export function createAuthorizeSig(keys: KeyRing) {
  return {
    sign: (token: string, carried: CarriedParameters) =>
      signatureOf(signedText(token, carried), keys('authorize_sig')[0]),

    verify(signature: string, token: string, carried: CarriedParameters) {
      const text = signedText(token, carried)
      const presented = Buffer.from(signature)
      return keys('authorize_sig').some((key) => {
        const expected = Buffer.from(signatureOf(text, key))
        return expected.length === presented.length && timingSafeEqual(expected, presented)
      })
    },
  }
}

function signatureOf(text: string, { bytes }: DerivedKey): string {
  return createHmac('sha256', bytes).update(text).digest('base64url')
}

// A JSON array of fixed order keeps every boundary, and null is not the empty string.
function signedText(token: string, { clientId, redirectUri, scope, state }: CarriedParameters) {
  return JSON.stringify([token, clientId, redirectUri, scope, state].map((value) => value ?? null))
}
