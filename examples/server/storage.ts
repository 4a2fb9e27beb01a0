import { randomUUID } from 'node:crypto'
import { type Db, MongoClient, MongoServerError } from 'mongodb'
import {
  memoryStore,
  memoryUsers,
  mongoStore,
  mongoUsers,
  type User,
  type UserStore,
} from '../../src/index.ts'
import type { RecordStore } from '../../src/store/published.ts'
import {
  createProviderKeys,
  sharedProviderKeys,
  type KeyPlace,
  type ProviderKeys,
  type SealedKeys,
} from './keys.ts'
import { reasonOf, StartRefused } from './environment.ts'

/** Everything that is kept: in memory, in MongoDB, or in PostgreSQL (`postgresql.ts`). */
export interface Storage {
  store: RecordStore
  users: UserStore
  providerKeys: ProviderKeys
  /** Does nothing where the username is taken. */
  addUser(user: Omit<User, 'id'>): Promise<void>
  close(): Promise<void>
}

interface UserDocument {
  _id: string
  username: string
  email?: string
  email_verified: boolean
  password_hash?: string
  password_changed_at: Date | null
  disabled: boolean
  may_replace_email?: boolean
}

/**
 * Together they bound how long a request waits for a database that is gone. What the URI says wins: to build indexes over a big
 * collection, the first start may need a longer `socketTimeoutMS`.
 */
const LIMITS_MS = {
  serverSelectionTimeoutMS: 5_000,
  connectTimeoutMS: 5_000,
  socketTimeoutMS: 5_000,
  waitQueueTimeoutMS: 5_000,
}

export async function memoryStorage(): Promise<Storage> {
  const users = memoryUsers()
  return {
    store: memoryStore(),
    users,
    providerKeys: await createProviderKeys(),

    async addUser(user) {
      if (!(await users.findByUsername(user.username))) users.add({ ...user, id: randomUUID() })
    },

    async close() {},
  }
}

export async function mongoStorage(mongodbUri: string, signingKeys: string[]): Promise<Storage> {
  const client = await connect(mongodbUri)
  const db = client.db()
  const users = db.collection<UserDocument>('users', { writeConcern: { w: 'majority' } })
  return {
    store: mongoStore(db),
    users: mongoUsers(users),
    providerKeys: await sharedProviderKeys(keysIn(db), signingKeys),

    async addUser({ username, email, emailVerified, passwordHash, disabled, mayReplaceEmail }) {
      try {
        await users.insertOne({
          _id: randomUUID(),
          username,
          ...(email !== undefined && { email }),
          email_verified: emailVerified,
          ...(passwordHash !== undefined && { password_hash: passwordHash }),
          password_changed_at: null,
          disabled,
          ...(mayReplaceEmail && { may_replace_email: true }),
        })
      } catch (error) {
        if (!(error instanceof MongoServerError && error.code === 11000)) throw error
      }
    },

    close: () => client.close(),
  }
}

export function keysIn(db: Db): KeyPlace {
  const all = db.collection<SealedKeys & { _id: 'jwks' }>('provider_jwks', {
    writeConcern: { w: 'majority' },
  })
  const one = { _id: 'jwks' } as const
  return {
    read: async () => (await all.findOne(one)) ?? undefined,
    async insert(keys) {
      const options = { upsert: true, returnDocument: 'after' } as const
      return (await all.findOneAndUpdate(one, { $setOnInsert: keys }, options)) ?? keys
    },
    replace: ({ jwe }, keys) => all.updateOne({ ...one, jwe }, { $set: keys }),
  }
}

async function connect(uri: string): Promise<MongoClient> {
  try {
    const client = new MongoClient(uri, limitsBeside(uri))
    await client.connect()
    return client
  } catch (error) {
    throw new StartRefused(`MONGODB_URI cannot be used: ${reasonOf(error)}`, { cause: error })
  }
}

function limitsBeside(uri: string): Partial<typeof LIMITS_MS> {
  const query = uri.replace(/^[^?]*/, '')
  const given = new Set([...new URLSearchParams(query).keys()].map((name) => name.toLowerCase()))
  return Object.fromEntries(
    Object.entries(LIMITS_MS).filter(([name]) => !given.has(name.toLowerCase())),
  )
}
