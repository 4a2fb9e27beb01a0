import { createHash } from 'node:crypto'
import { CompactEncrypt, compactDecrypt, decodeProtectedHeader, errors } from 'jose'
import type { KeyRing } from './keys.ts'

/**
 * Encrypts secrets at rest as a compact JWE, `dir` with A256GCM (RFC 7516), under the first key of the ring. Each is bound to what
 * it is for, such as the host that a password was given for.
 */
export interface SecretBox {
  seal(plain: string, purpose: string): Promise<string>
  /** `undefined`: no key of the ring opens it, it was altered, or it is for something else. */
  open(sealed: string, purpose: string): Promise<string | undefined>
  /** Whether the first key of the ring sealed it. */
  isCurrent(sealed: string): boolean
}

export function createSecretBox(keys: KeyRing): SecretBox {
  return {
    seal(plain, purpose) {
      const { kid, bytes } = keys('jwe')[0]
      return new CompactEncrypt(new TextEncoder().encode(plain))
        .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid, purpose: digestOf(purpose) })
        .encrypt(bytes)
    },

    async open(sealed, purpose) {
      try {
        const { plaintext, protectedHeader } = await compactDecrypt(
          sealed,
          ({ kid }) => {
            const key = keys('jwe').find((candidate) => candidate.kid === kid)
            if (!key) throw new errors.JWEDecryptionFailed()
            return key.bytes
          },
          { keyManagementAlgorithms: ['dir'], contentEncryptionAlgorithms: ['A256GCM'] },
        )
        if (protectedHeader['purpose'] !== digestOf(purpose)) return undefined
        return new TextDecoder().decode(plaintext)
      } catch (error) {
        if (error instanceof errors.JOSEError) return undefined
        throw error
      }
    },

    isCurrent(sealed) {
      try {
        return decodeProtectedHeader(sealed).kid === keys('jwe')[0].kid
      } catch {
        return false
      }
    },
  }
}

// Any text in a few characters: the header is no place to show it.
function digestOf(purpose: string): string {
  return createHash('sha256').update(purpose).digest('base64url')
}
