/**
 * The keys of the service. SIGNING_KEYS signs and seals, with a key derived from it for each purpose.
 *
 * The private keys that sign ID tokens live in the database, sealed. Processes that share a database must share them, or the tokens
 * of one are refused by the other. A dump of the database alone signs nothing.
 *
 * @module
 */
import { hkdfSync, randomBytes } from 'node:crypto'
import { link, readFile, unlink, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { CompactEncrypt, compactDecrypt, exportJWK, generateKeyPair, type JWK } from 'jose'
import { reasonOf, StartRefused } from './environment.ts'

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

export interface ProviderKeys {
  keys: JWK[]
}

/** The keys under the first key of the ring, and under its others. */
export interface SealedKeys {
  jwe: string
  /** Left out: there were none. */
  jwes_of_others?: string[]
}

/** Where a database keeps them, in `provider_jwks`. */
export interface KeyPlace {
  read(): Promise<SealedKeys | undefined>
  /** Answers what is there then: of those who insert at once, one does. */
  insert(keys: SealedKeys): Promise<SealedKeys>
  /** In place of those, and of no others. */
  replace(before: SealedKeys, keys: SealedKeys): Promise<unknown>
}

/** RS256 is what a client expects that says nothing; ES256 is there for those that ask for it. */
export async function createProviderKeys(): Promise<ProviderKeys> {
  const pairs = await Promise.all(
    ['RS256', 'ES256'].map((algorithm) => generateKeyPair(algorithm, { extractable: true })),
  )
  return { keys: await Promise.all(pairs.map(({ privateKey }) => exportJWK(privateKey))) }
}

/**
 * The first process creates them. They are sealed under each key of SIGNING_KEYS, and anew if a process starts with other keys. So
 * every process can start during a rotation, with the former ring and with the next one.
 */
export async function sharedProviderKeys(
  place: KeyPlace,
  signingKeys: string[],
): Promise<ProviderKeys> {
  const sealed =
    (await place.read()) ??
    (await place.insert(await sealedFor(signingKeys, await createProviderKeys())))
  const { jwe, jwes_of_others: others = [] } = sealed
  const opened = await Promise.all(signingKeys.map((key) => openAny([jwe, ...others], key)))
  const keys = opened.find((each) => each !== undefined)
  if (!keys) {
    throw new StartRefused('SIGNING_KEYS holds no key that this database was used with before.')
  }
  const isForThese = opened.every(Boolean) && others.length + 1 === signingKeys.length
  if (!isForThese) await place.replace(sealed, await sealedFor(signingKeys, keys))
  return keys
}

async function sealedFor(signingKeys: string[], keys: ProviderKeys): Promise<SealedKeys> {
  const [jwe = '', ...others] = await Promise.all(signingKeys.map((key) => seal(keys, key)))
  return { jwe, jwes_of_others: others }
}

function seal(keys: ProviderKeys, signingKey: string): Promise<string> {
  return new CompactEncrypt(Buffer.from(JSON.stringify(keys)))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
    .encrypt(derivedKey(signingKey, 'jwks'))
}

async function openAny(jwes: string[], signingKey: string): Promise<ProviderKeys | undefined> {
  for (const jwe of jwes) {
    const decrypted = await compactDecrypt(jwe, derivedKey(signingKey, 'jwks')).catch(() => {})
    if (decrypted) return JSON.parse(Buffer.from(decrypted.plaintext).toString())
  }
  return undefined
}
