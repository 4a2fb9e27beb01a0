/** The keys of the flows, derived from the host's secrets. This folder is for auditors. It knows neither a flow nor its callers. */
import { createHash, createHmac, hkdfSync, randomUUID, timingSafeEqual } from 'node:crypto'
import type { RequestParameters } from '../contract/index.ts'
import type { KeyRings, NotedKeyRing } from '../store/index.ts'

export interface DerivedKey {
  /** Names the key in what it signed or encrypted. It reveals nothing about the key. */
  kid: string
  bytes: Buffer
}

/** Each purpose has its own key. The secrets themselves sign and encrypt nothing. */
export type KeyPurpose = 'authorize_sig' | 'jwe' | 'keyed_hash' | 'login_code'

/** The first key signs and encrypts, all verify and decrypt. */
export type KeyRing = Record<KeyPurpose, readonly [DerivedKey, ...DerivedKey[]]>

/** By HKDF-SHA-256 (RFC 5869). */
export function createKeyRing([first, ...others]: readonly [Buffer, ...Buffer[]]): KeyRing {
  const ringOf = (purpose: KeyPurpose) =>
    [derive(first, purpose), ...others.map((secret) => derive(secret, purpose))] as const
  return {
    authorize_sig: ringOf('authorize_sig'),
    jwe: ringOf('jwe'),
    keyed_hash: ringOf('keyed_hash'),
    login_code: ringOf('login_code'),
  }
}

function derive(secret: Buffer, purpose: KeyPurpose): DerivedKey {
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', `oidc-account-flows/${purpose}`, 32))
  const kid = createHash('sha256').update('kid').update(bytes).digest('base64url').slice(0, 11)
  return { kid, bytes }
}

/** Stands for a text in records: equal texts have equal hashes. Without the key, a hash reveals nothing. */
export const keyedHashBy = (keys: KeyRing) => (text: string) =>
  signatureOf(text, keys.keyed_hash[0])

export type AuthorizeSig = ReturnType<typeof createAuthorizeSig>

/** `authorize_sig` (5.4): HMAC-SHA-256 over the token and all request parameters of a verification link, in any order. */
export function createAuthorizeSig(keys: KeyRing) {
  return {
    sign: (token: string, parameters: RequestParameters) =>
      signatureOf(signedText(token, parameters), keys.authorize_sig[0]),

    verify(signature: string, token: string, parameters: RequestParameters) {
      const text = signedText(token, parameters)
      const presented = Buffer.from(signature)
      return keys.authorize_sig.some((key) => {
        const expected = Buffer.from(signatureOf(text, key))
        return expected.length === presented.length && timingSafeEqual(expected, presented)
      })
    },
  }
}

function signatureOf(text: string, { bytes }: DerivedKey): string {
  return createHmac('sha256', bytes).update(text).digest('base64url')
}

// A JSON array in a fixed order keeps the values apart, and null differs from the empty string.
function signedText(token: string, { clientId, redirectUri, scope, state }: RequestParameters) {
  return JSON.stringify([token, clientId, redirectUri, scope, state].map((value) => value ?? null))
}

/** So three notes may be late or lost. */
const NOTED_WITHIN_MS = 240_000

export type OwnKeyRing = ReturnType<typeof createOwnKeyRing>

/** Lets the processes of one store know each other's keys, so that a rotation goes step by step. `oauthUrl`: where its links lead. */
export function createOwnKeyRing(rings: KeyRings, keys: KeyRing, oauthUrl: string) {
  const place = createHash('sha256').update(oauthUrl).digest('base64url').slice(0, 11)
  const own: NotedKeyRing = {
    id: `${place}.${randomUUID()}`,
    // Key ids are no secret: they are also in the headers of what the keys seal.
    keyIds: [...new Set(keys.jwe.map(({ kid }) => kid))],
  }
  return {
    note: () => rings.note(own.id, own.keyIds),
    /** Called when the process ends, so that no rotation waits for it. */
    forget: () => rings.note(own.id, []),

    /** The key ids of every process that runs, including this one. */
    async all(): Promise<string[][]> {
      const noted = await rings.noted(NOTED_WITHIN_MS)
      const others = noted.filter(({ id }) => id !== own.id)
      return [own, ...others].map(({ keyIds }) => keyIds)
    },

    /** Whether another process runs whose links lead elsewhere. */
    async isShared() {
      const noted = await rings.noted(NOTED_WITHIN_MS)
      return noted.some(({ id }) => id.includes('.') && !id.startsWith(`${place}.`))
    },
  }
}
