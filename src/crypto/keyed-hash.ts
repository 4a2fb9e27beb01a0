import { createHmac } from 'node:crypto'
import type { KeyRing } from './keys.ts'

/** Stands for a text in records: equal for equal texts, and tells nothing about them without the key. */
export function keyedHash(keys: KeyRing, text: string): string {
  return createHmac('sha256', keys('keyed_hash')[0].bytes).update(text).digest('base64url')
}
