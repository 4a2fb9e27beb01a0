import { CompactEncrypt, compactDecrypt, errors } from 'jose'
import type { KeyRing } from './keys.ts'

/** Encrypts secrets at rest as a compact JWE, `dir` with A256GCM (RFC 7516), under the first key of the ring. */
export interface SecretBox {
  seal(plain: string): Promise<string>
  /** `undefined`: no key of the ring opens it, or it was altered. */
  open(sealed: string): Promise<string | undefined>
}

export function createSecretBox(keys: KeyRing): SecretBox {
  return {
    seal(plain) {
      const { kid, bytes } = keys('jwe')[0]
      return new CompactEncrypt(new TextEncoder().encode(plain))
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid })
        .encrypt(bytes)
    },

    async open(sealed) {
      try {
        const { plaintext } = await compactDecrypt(
          sealed,
          ({ kid }) => {
            const key = keys('jwe').find((candidate) => candidate.kid === kid)
            if (!key) throw new errors.JWEDecryptionFailed()
            return key.bytes
          },
          { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] },
        )
        return new TextDecoder().decode(plaintext)
      } catch (error) {
        if (error instanceof errors.JOSEError) return undefined
        throw error
      }
    },
  }
}
