import { MongoServerError, type Collection, type Db, type IndexDescription } from 'mongodb'
import type { AdapterPayload } from 'oidc-provider'
import type { AccountAdapter } from './endable-sessions.ts'

interface StoredPayload {
  _id: string
  payload: AdapterPayload
  expiresAt?: Date
}

const GRANTABLE = [
  'AccessToken',
  'AuthorizationCode',
  'RefreshToken',
  'DeviceCode',
  'BackchannelAuthenticationRequest',
  'PreAuthorizedCode',
]
const MODELS = [
  ...GRANTABLE,
  'Session',
  'Interaction',
  'Grant',
  'Client',
  'ClientCredentials',
  'InitialAccessToken',
  'RegistrationAccessToken',
  'PushedAuthorizationRequest',
  'ReplayDetection',
]
const LOGIN_ACCOUNTS = ['payload.result.login.accountId', 'payload.lastSubmission.login.accountId']

/**
 * oidc-provider's records on MongoDB: one collection a model, in snake_case, documents `{ _id, payload, expiresAt }`, removed by
 * a TTL index. Payloads have an index by account. Reads see every write that was answered before.
 *
 * `flows.start()` creates collections and indexes of an adapter that `flows.adapter` wraps.
 */
export function mongoAdapter(
  db: Db,
): ((model: string) => AccountAdapter) & { start(): Promise<void> } {
  const collectionOf = (model: string): Collection<StoredPayload> =>
    db.collection(snakeCase(model), {
      readPreference: 'primary',
      writeConcern: { w: 'majority' },
      ignoreUndefined: true,
    })

  const factory = (model: string): AccountAdapter => {
    const collection = collectionOf(model)
    const findWhere = async (field: '_id' | 'payload.uid' | 'payload.userCode', value: string) =>
      typeof value === 'string'
        ? (await collection.findOne({ [field]: value }))?.payload
        : undefined

    return {
      async upsert(id, payload, expiresIn) {
        const expiresAt = expiresIn ? { expiresAt: new Date(Date.now() + expiresIn * 1000) } : {}
        await collection.replaceOne({ _id: id }, { payload, ...expiresAt }, { upsert: true })
      },
      find: (id) => findWhere('_id', id),
      findByUid: (uid) => findWhere('payload.uid', uid),
      findByUserCode: (userCode) => findWhere('payload.userCode', userCode),
      async consume(id) {
        const consumed = Math.floor(Date.now() / 1000)
        await collection.updateOne({ _id: id }, { $set: { 'payload.consumed': consumed } })
      },
      async destroy(id) {
        await collection.deleteOne({ _id: id })
      },
      async revokeByGrantId(grantId) {
        await collection.deleteMany({ 'payload.grantId': grantId })
      },
      async destroyByAccountId(accountId, isEnded) {
        const fields = model === 'Interaction' ? LOGIN_ACCOUNTS : ['payload.accountId']
        const found = await collection
          .find({ $or: fields.map((field) => ({ [field]: accountId })) })
          .toArray()
        const ended = found.filter(({ payload }) => isEnded(payload)).map(({ _id }) => _id)
        if (ended.length === 0) return 0
        return (await collection.deleteMany({ _id: { $in: ended } })).deletedCount
      },
    }
  }

  return Object.assign(factory, {
    async start() {
      for (const model of MODELS) await createIndexes(db, snakeCase(model), indexesOf(model))
    },
  })
}

// One after another: a burst of collections created at once stalls some servers.
async function createIndexes(db: Db, name: string, indexes: IndexDescription[]): Promise<void> {
  try {
    await db.createCollection(name)
  } catch (error) {
    if (!(error instanceof MongoServerError && error.codeName === 'NamespaceExists')) throw error
  }
  await db.collection(name).createIndexes(indexes)
}

function indexesOf(model: string): IndexDescription[] {
  const indexes: IndexDescription[] = [{ key: { expiresAt: 1 }, expireAfterSeconds: 0 }]
  if (GRANTABLE.includes(model)) indexes.push({ key: { 'payload.grantId': 1 } })
  if ([...GRANTABLE, 'Session', 'Grant'].includes(model)) {
    indexes.push({ key: { 'payload.accountId': 1 } })
  }
  if (model === 'Session') indexes.push({ key: { 'payload.uid': 1 } })
  if (model === 'Interaction') {
    for (const field of LOGIN_ACCOUNTS) indexes.push({ key: { [field]: 1 }, sparse: true })
  }
  if (model === 'DeviceCode') {
    const partialFilterExpression = { 'payload.userCode': { $type: 'string' } }
    indexes.push({ key: { 'payload.userCode': 1 }, unique: true, partialFilterExpression })
  }
  return indexes
}

function snakeCase(model: string): string {
  return model.replaceAll(/(?<!^)[A-Z]/g, '_$&').toLowerCase()
}
