import type { Collection, Db } from 'mongodb'
import type { AdapterPayload } from 'oidc-provider'
import { systemClock } from '../clock.ts'
import { isDuplicateKey } from '../stores/mongodb-errors.ts'
import { createIndexes, type NamedIndex } from '../stores/mongodb-indexes.ts'
import { withUnavailable } from '../stores/mongodb-unavailable.ts'
import { IDP_MODELS, OAUTH_MODELS } from './account-stamp.ts'
import type { AccountAdapter } from './endable-sessions.ts'
import { mayReplace, refuseReuse, refuseUsed } from './single-use.ts'

interface StoredPayload {
  _id: string
  payload: AdapterPayload
  expiresAt?: Date
}

const MODELS = [
  ...OAUTH_MODELS,
  ...IDP_MODELS,
  'Client',
  'ClientCredentials',
  'InitialAccessToken',
  'RegistrationAccessToken',
  'PushedAuthorizationRequest',
  'ReplayDetection',
]
const NOT_CONSUMED = { 'payload.consumed': { $exists: false } }
const REPLACEABLE = {
  any: () => ({}),
  'not consumed': () => NOT_CONSUMED,
  expired: (now: Date) => ({ expiresAt: { $lte: now } }),
}
const LOGIN_ACCOUNTS = ['payload.result.login.accountId', 'payload.lastSubmission.login.accountId']

/**
 * oidc-provider's records on MongoDB: one collection a model, in snake_case, documents `{ _id, payload, expiresAt }`, removed by
 * a TTL index. Payloads have an index by account. Reads see every write that was answered before.
 *
 * `flows.start()` creates collections and indexes of an adapter that `flows.adapter` wraps.
 */
export function mongoAdapter(
  db: Db,
  { now } = systemClock,
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

    return withUnavailable<AccountAdapter>({
      async upsert(id, payload, expiresIn) {
        const expiresAt = expiresIn
          ? { expiresAt: new Date(now().getTime() + expiresIn * 1000) }
          : {}
        const replaceable = { _id: id, ...REPLACEABLE[mayReplace(model)](now()) }
        const replacement = { payload, ...expiresAt }
        try {
          await collection.replaceOne(replaceable, replacement, { upsert: true })
        } catch (error) {
          if (!isDuplicateKey(error) || mayReplace(model) === 'any') throw error
          if (!(await findWhere('_id', id))) throw error
          refuseUsed(model)
        }
      },
      find: (id) => findWhere('_id', id),
      findByUid: (uid) => findWhere('payload.uid', uid),
      findByUserCode: (userCode) => findWhere('payload.userCode', userCode),
      async consume(id) {
        const consumed = Math.floor(now().getTime() / 1000)
        const { matchedCount } = await collection.updateOne(
          { _id: id, ...NOT_CONSUMED },
          { $set: { 'payload.consumed': consumed } },
        )
        if (matchedCount === 1) return
        await refuseReuse(model, (await findWhere('_id', id))?.grantId, factory)
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
    })
  }

  const { start } = withUnavailable({
    async start() {
      for (const model of MODELS) await createIndexes(collectionOf(model), indexesOf(model))
    },
  })
  return Object.assign(factory, { start })
}

// Names are those of the adapter that oidc-provider used to show, so that its collections can be taken over.
function indexesOf(model: string): NamedIndex[] {
  const by = (field: string): NamedIndex => ({ name: `${field}_1`, key: { [field]: 1 } })
  const indexes: NamedIndex[] = [{ ...by('expiresAt'), expireAfterSeconds: 0 }]
  const isOfGrant = model !== 'Grant' && OAUTH_MODELS.includes(model)
  if (isOfGrant) indexes.push(by('payload.grantId'))
  if ([...OAUTH_MODELS, 'Session'].includes(model)) indexes.push(by('payload.accountId'))
  // Not unique: of two windows, one may save a session under the id that the other has just replaced.
  if (model === 'Session') indexes.push(by('payload.uid'))
  if (model === 'Interaction') indexes.push(...LOGIN_ACCOUNTS.map(by))
  if (model === 'DeviceCode') indexes.push({ ...by('payload.userCode'), unique: true })
  return indexes
}

function snakeCase(model: string): string {
  return model.replaceAll(/(?<!^)[A-Z]/g, '_$&').toLowerCase()
}
