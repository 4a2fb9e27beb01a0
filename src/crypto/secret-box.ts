import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'
import { jsonOf } from '../errors.ts'
import type { DerivedKey, KeyRing } from './keys.ts'

const IV_BYTES = 12
const TAG_BYTES = 16

export type SecretBox = ReturnType<typeof createSecretBox>

/** Encrypts secrets at rest as a compact JWE, `dir` with A256GCM (RFC 7516). Each is bound to its purpose, such as a host. */
// Not with jose: WebCrypto takes ten times as long, and each record of the provider is sealed.
export function createSecretBox(keys: KeyRing) {
  return {
    seal(plain: string, purpose: string) {
      const key = keys.jwe[0]
      const header = headerOf(key, purpose)
      const iv = randomBytes(IV_BYTES)
      const cipher = createCipheriv('aes-256-gcm', key.bytes, iv).setAAD(Buffer.from(header))
      const encrypted = Buffer.concat([cipher.update(plain, 'utf8'), cipher.final()])
      const parts = [iv, encrypted, cipher.getAuthTag()].map((part) => part.toString('base64url'))
      return `${header}..${parts.join('.')}`
    },

    /** `undefined`: the secret was altered, has another purpose, or no key of the ring opens it. */
    open(sealed: string, purpose: string): string | undefined {
      const [header = '', wrapped, ...encoded] = sealed.split('.')
      const key = keys.jwe.find((candidate) => header === headerOf(candidate, purpose))
      const [iv, encrypted, tag] = encoded.map((part) => Buffer.from(part, 'base64url'))
      if (!key || wrapped || !iv || !encrypted || tag?.length !== TAG_BYTES) return undefined
      try {
        const decipher = createDecipheriv('aes-256-gcm', key.bytes, iv)
          .setAAD(Buffer.from(header))
          .setAuthTag(tag)
        return Buffer.concat([decipher.update(encrypted), decipher.final()]).toString()
      } catch {
        return undefined
      }
    },

    /** Whether the first key of the ring sealed it. */
    isCurrent(sealed: string): boolean {
      const [header = ''] = sealed.split('.')
      const read = jsonOf(Buffer.from(header, 'base64url').toString())
      return Reflect.get(Object(read), 'kid') === keys.jwe[0].kid
    },
  }
}

// The purpose as a digest: the header is readable, and should be short.
function headerOf({ kid }: DerivedKey, purpose: string): string {
  const digest = createHash('sha256').update(purpose).digest('base64url')
  const header = { alg: 'dir', enc: 'A256GCM', kid, purpose: digest }
  return Buffer.from(JSON.stringify(header)).toString('base64url')
}
