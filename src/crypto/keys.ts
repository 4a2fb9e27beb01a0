import { createHash, createHmac, hkdfSync } from 'node:crypto'

export interface DerivedKey {
  /** Names the key in what it signed or encrypted, without telling anything about it. */
  kid: string
  bytes: Buffer
}

/** Each purpose has its own key; the ring itself signs and encrypts nothing. */
export type KeyPurpose = 'authorize_sig' | 'jwe' | 'keyed_hash' | 'login_code'

/** The first key signs and encrypts, all verify and decrypt. */
export type KeyRing = (purpose: KeyPurpose) => readonly [DerivedKey, ...DerivedKey[]]

/** Derives per-purpose keys by HKDF-SHA-256 (RFC 5869) from a ring of secrets, the first of which is in force. */
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

/** Stands for a text in records: equal for equal texts, and tells nothing about them without the key. */
export function keyedHash(keys: KeyRing, text: string): string {
  return createHmac('sha256', keys('keyed_hash')[0].bytes).update(text).digest('base64url')
}
