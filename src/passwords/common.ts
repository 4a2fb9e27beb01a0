import { createHash } from 'node:crypto'
import { access, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { brotliDecompress } from 'node:zlib'

/** Made by `.ci/common-passwords.ts`, out of the lists that `NOTICE` names. */
export const LIST = new URL('./common-passwords.br', import.meta.url)

/** How many bytes of each hash are kept. One good password in 2.6 million shares them with a common one so far, and is refused. */
export const KEY_BYTES = 5

let list: Promise<Buffer> | undefined

/** Reads the list once in a process. It takes 2 MB of memory, and none before. */
export function loadCommonPasswords(): Promise<Buffer> {
  const unpacked = async () => promisify(brotliDecompress)(await readFile(LIST))
  list ??= unpacked().catch((error: unknown) => {
    // The next call tries again: perhaps no file handle was free.
    list = undefined
    throw error
  })
  return list
}

/** @throws an error that names the list, if the package is damaged. */
export const expectCommonPasswords = () => access(LIST)

/** Whether it is a common password, in any letter case or Unicode form, with or without blanks around it. Blanks alone are common. */
export async function isCommon(password: string): Promise<boolean> {
  if (folded(password) === '') return true
  const keys = await loadCommonPasswords()
  const wanted = keyOf(password)
  let from = 0
  let to = keys.length / KEY_BYTES
  while (from < to) {
    const middle = (from + to) >>> 1
    const key = keyAt(keys, middle)
    if (key === wanted) return true
    if (key < wanted) from = middle + 1
    else to = middle
  }
  return false
}

/** A capital letter makes a common password no safer. */
export function folded(password: string): string {
  return password.normalize('NFKC').toLowerCase().trim()
}

export function keyOf(password: string): number {
  return createHash('sha256').update(folded(password)).digest().readUIntBE(0, KEY_BYTES)
}

/** The file has the first bytes of all keys, then their second bytes, and so on, because that compresses better. */
function keyAt(keys: Buffer, index: number): number {
  const count = keys.length / KEY_BYTES
  let key = 0
  for (let byte = 0; byte < KEY_BYTES; byte += 1)
    key = key * 256 + (keys[byte * count + index] ?? 0)
  return key
}
