import { createHash, createHmac, hkdfSync } from 'node:crypto'

export interface DerivedKey {
  /** Names the key in what it signed or encrypted, and reveals nothing about it. */
  kid: string
  bytes: Buffer
}

/** Each purpose has its own key. The secrets themselves sign and encrypt nothing. */
export type KeyPurpose = 'authorize_sig' | 'jwe' | 'keyed_hash' | 'login_code'

/** The first key signs and encrypts, all verify and decrypt. */
export type KeyRing = (purpose: KeyPurpose) => readonly [DerivedKey, ...DerivedKey[]]

/** Derives the keys of each purpose from the secrets, by HKDF-SHA-256 (RFC 5869). */
export function createKeyRing(secrets: readonly [Buffer, ...Buffer[]]): KeyRing {
  const [first, ...others] = secrets
  const ringOf = (purpose: KeyPurpose) =>
    [derive(first, purpose), ...others.map((secret) => derive(secret, purpose))] as const
  const rings = {
    authorize_sig: ringOf('authorize_sig'),
    jwe: ringOf('jwe'),
    keyed_hash: ringOf('keyed_hash'),
    login_code: ringOf('login_code'),
  }
  return (purpose) => rings[purpose]
}

function derive(secret: Buffer, purpose: KeyPurpose): DerivedKey {
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', `oidc-account-flows/${purpose}`, 32))
  const kid = createHash('sha256').update('kid').update(bytes).digest('base64url').slice(0, 11)
  return { kid, bytes }
}

/** Stands for a text in records: equal for equal texts. Without the key it reveals nothing. */
export function keyedHash(keys: KeyRing, text: string): string {
  return createHmac('sha256', keys('keyed_hash')[0].bytes).update(text).digest('base64url')
}
