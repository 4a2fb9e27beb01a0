import { hkdfSync, randomBytes } from 'node:crypto'
import { link, readFile, unlink, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { reasonOf, StartRefused } from './start-refused.ts'

const FILE = fileURLToPath(new URL('../../.oidc-account-flows-keys', import.meta.url))

/** The signing keys of a developer's checkout: made once, then the same for all of its processes. */
export async function checkoutSigningKeys(file = FILE): Promise<string[]> {
  try {
    return (await readKeys(file)) ?? (await createKeys(file))
  } catch (error) {
    throw new StartRefused(
      `SIGNING_KEYS is not set, and ${file} cannot be used: ${reasonOf(error)}`,
      { cause: error },
    )
  }
}

/** A key of its own for each purpose: what leaks of one tells nothing of the others. */
export function derivedKey(signingKey: string, purpose: string): Uint8Array {
  const info = `oidc-account-flows example: ${purpose}`
  return new Uint8Array(hkdfSync('sha256', Buffer.from(signingKey, 'base64url'), '', info, 32))
}

async function readKeys(file: string): Promise<string[] | undefined> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (text === undefined) return undefined
  const keys = text.trim().split(',')
  if (keys.every((key) => /^[A-Za-z0-9_-]{43,}$/.test(key))) return keys
  throw new Error('it holds no base64url keys; delete it to get a new one')
}

// Written aside and linked: another process sees the whole file or none, and the first one wins.
async function createKeys(file: string): Promise<string[]> {
  const aside = `${file}.${randomBytes(6).toString('hex')}`
  const key = randomBytes(32).toString('base64url')
  await writeFile(aside, `${key}\n`, { mode: 0o600, flag: 'wx' })
  try {
    await link(aside, file)
    return [key]
  } catch (error) {
    const keys = await readKeys(file)
    if (keys) return keys
    throw error
  } finally {
    await unlink(aside)
  }
}
