/**
 * The private keys that sign ID tokens. Processes that share a database must share them, or the tokens of one are refused by
 * the other; so they live in the database, encrypted with a key derived from SIGNING_KEYS. A dump of the database alone signs
 * nothing.
 *
 * @module
 */
import { CompactEncrypt, compactDecrypt, exportJWK, generateKeyPair, type JWK } from 'jose'
import type { Collection, Db } from 'mongodb'
import { derivedKey } from './signing-keys.ts'
import { StartRefused } from './start-refused.ts'

export interface ProviderKeys {
  keys: JWK[]
}

interface SealedKeys {
  _id: 'jwks'
  jwe: string
}

/** RS256 is what a client expects that says nothing; ES256 is there for those that ask for it. */
export async function createProviderKeys(): Promise<ProviderKeys> {
  const pairs = await Promise.all(
    ['RS256', 'ES256'].map((algorithm) => generateKeyPair(algorithm, { extractable: true })),
  )
  return { keys: await Promise.all(pairs.map(({ privateKey }) => exportJWK(privateKey))) }
}

/** The first process creates them; to rotate SIGNING_KEYS, put a new one in front and restart before the old one goes. */
export async function sharedProviderKeys(db: Db, signingKeys: string[]): Promise<ProviderKeys> {
  const collection = db.collection<SealedKeys>('provider_jwks', { writeConcern: { w: 'majority' } })
  const { jwe } =
    (await collection.findOne({ _id: 'jwks' })) ?? (await create(collection, signingKeys))
  const [first, ...others] = signingKeys
  const opened = await open(jwe, first)
  if (opened) return opened
  for (const key of others) {
    const keys = await open(jwe, key)
    if (!keys) continue
    await collection.updateOne({ _id: 'jwks', jwe }, { $set: { jwe: await seal(keys, first) } })
    return keys
  }
  throw new StartRefused('SIGNING_KEYS holds no key that this database was used with before.')
}

async function create(collection: Collection<SealedKeys>, [first]: string[]): Promise<SealedKeys> {
  const jwe = await seal(await createProviderKeys(), first)
  const stored = await collection.findOneAndUpdate(
    { _id: 'jwks' },
    { $setOnInsert: { jwe } },
    { upsert: true, returnDocument: 'after' },
  )
  return stored ?? { _id: 'jwks', jwe }
}

function seal(keys: ProviderKeys, signingKey = ''): Promise<string> {
  return new CompactEncrypt(Buffer.from(JSON.stringify(keys)))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
    .encrypt(derivedKey(signingKey, 'jwks'))
}

async function open(jwe: string, signingKey = ''): Promise<ProviderKeys | undefined> {
  const decrypted = await compactDecrypt(jwe, derivedKey(signingKey, 'jwks')).catch(() => undefined)
  return decrypted && JSON.parse(Buffer.from(decrypted.plaintext).toString())
}
