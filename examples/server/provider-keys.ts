/**
 * The private keys that sign ID tokens. Processes that share a database must share them, or the tokens of one are refused by
 * the other. So they live in the database, encrypted with a key made from SIGNING_KEYS. A dump of the database alone signs
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
  /** The same, under the other keys of the ring. */
  jwes_of_others?: string[]
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
export async function sharedProviderKeys(db: Db, signingKeys: string[]): Promise<ProviderKeys> {
  const collection = db.collection<SealedKeys>('provider_jwks', { writeConcern: { w: 'majority' } })
  const { jwe, jwes_of_others: others = [] } =
    (await collection.findOne({ _id: 'jwks' })) ?? (await create(collection, signingKeys))
  const opened = await Promise.all(signingKeys.map((key) => openAny([jwe, ...others], key)))
  const keys = opened.find((each) => each !== undefined)
  if (!keys) {
    throw new StartRefused('SIGNING_KEYS holds no key that this database was used with before.')
  }
  const isForThese = opened.every(Boolean) && others.length + 1 === signingKeys.length
  if (!isForThese) {
    await collection.updateOne({ _id: 'jwks', jwe }, { $set: await sealedFor(signingKeys, keys) })
  }
  return keys
}

async function create(
  collection: Collection<SealedKeys>,
  signingKeys: string[],
): Promise<SealedKeys> {
  const sealed = await sealedFor(signingKeys, await createProviderKeys())
  const stored = await collection.findOneAndUpdate(
    { _id: 'jwks' },
    { $setOnInsert: sealed },
    { upsert: true, returnDocument: 'after' },
  )
  return stored ?? { _id: 'jwks', ...sealed }
}

async function sealedFor(signingKeys: string[], keys: ProviderKeys) {
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
