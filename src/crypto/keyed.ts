import { createAuthorizeSig, keyedHashBy, type KeyRing } from './keys.ts'
import { createLoginCodes } from './login-code.ts'

export type Keyed = ReturnType<typeof createKeyed>

/** What the keys hash, sign and derive. */
export const createKeyed = (keys: KeyRing) => ({
  /** Stands for a text in records, and reveals nothing about it. */
  keyedHash: keyedHashBy(keys),
  authorizeSig: createAuthorizeSig(keys),
  loginCodes: createLoginCodes(keys),
})
