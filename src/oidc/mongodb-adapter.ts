import type { Collection, Db } from 'mongodb'
import type { AdapterPayload } from 'oidc-provider'
import { systemClock, type Clock } from '../clock.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import { hashToken } from '../crypto/token.ts'
import { isDuplicateKey } from '../stores/mongodb-errors.ts'
import { createIndexes, type NamedIndex } from '../stores/mongodb-indexes.ts'
import { withUnavailable } from '../stores/mongodb-unavailable.ts'
import { IDP_MODELS, OAUTH_MODELS } from './account-stamp.ts'
import type { AccountAdapter } from './endable-sessions.ts'
import { openRecord, sealRecord, storedId, type StoredRecord } from './sealed-records.ts'
import { mayReplace, refuseReuse, refuseUsed } from './single-use.ts'

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
/** As versions before the sealing wrote it. Without this, a hash that was read in the database would be an id. */
const IN_CLEAR = { sealed: { $exists: false } }
const NOT_CONSUMED = { 'payload.consumed': { $exists: false } }
const REPLACEABLE = {
  any: () => ({}),
  'not consumed': () => NOT_CONSUMED,
  expired: (now: Date) => ({ expiresAt: { $lte: now } }),
}
const LOGIN_ACCOUNTS = ['payload.result.login.accountId', 'payload.lastSubmission.login.accountId']

interface MongoAdapterOptions extends Partial<Pick<Clock, 'now'>> {
  records?: 'sealed' | 'clear'
}

type MongoAdapterFactory = ((model: string, box?: SecretBox) => AccountAdapter) & {
  start(box?: SecretBox): Promise<void>
}

/**
 * oidc-provider's records on MongoDB: one collection a model, in snake_case, documents `{ _id, payload, sealed, expiresAt }`, removed
 * by a TTL index. `_id` is the SHA-256 of the id, in hex; `payload` holds what is looked for, such as `accountId`; all else is
 * `sealed` with the first secret of the flows. A client keeps its `client_id`, and all but its secret is in clear.
 * Reads see every write that was answered before.
 *
 * `flows.adapter` hands it the keys; what you wrap around it passes the second argument on. Without keys it stores records in clear,
 * and says so in a warning. `flows.start()` creates its collections and indexes, and seals the secrets of clients that are in clear or under another key.
 *
 * @param options.records - `clear` writes records as version 0.1.0 did: for the time in which processes of that version share the
 *   database. Both forms are always read.
 */
export function mongoAdapter(
  db: Db,
  { now = systemClock.now, records = 'sealed' }: MongoAdapterOptions = {},
): MongoAdapterFactory {
  const collectionOf = (model: string): Collection<StoredRecord> =>
    db.collection(snakeCase(model), {
      readPreference: 'primary',
      writeConcern: { w: 'majority' },
      ignoreUndefined: true,
    })

  const factory = (model: string, box?: SecretBox): AccountAdapter => {
    const collection = collectionOf(model)
    const isSealing = records === 'sealed' && box !== undefined
    if (!box) process.emitWarning('mongoAdapter() stores records in clear without flows.adapter(…)')
    const ownId = (id: string) => (isSealing ? storedId(model, id) : id)
    const ownForm = (id: string, payload: AdapterPayload) =>
      isSealing ? sealRecord(box, model, id, payload) : { _id: id, payload }
    const withId = (id: string) => ({
      $or: [{ _id: storedId(model, id) }, { _id: id, ...IN_CLEAR }],
    })

    async function find(id: string): Promise<AdapterPayload | undefined> {
      if (typeof id !== 'string') return undefined
      const forms = await collection.find(withId(id)).toArray()
      const found = forms.find(({ _id }) => _id === ownId(id)) ?? forms[0]
      const payload = found && openRecord(box, model, found)
      if (!payload || found._id === ownId(id)) return payload
      return (await isRewritten(found, id, payload)) ? payload : find(id)
    }

    // It is replaced and consumed in its own form only. `false`: another one was faster.
    async function isRewritten(found: StoredRecord, id: string, payload: AdapterPayload) {
      const { expiresAt } = found
      const own = { ...ownForm(id, payload), ...(expiresAt && { expiresAt }) }
      if (!(await collection.insertOne(own).then(() => true, falseIfDuplicate))) return false
      if ((await collection.deleteOne({ _id: found._id })).deletedCount === 1) return true
      // It has been destroyed since it was found.
      await collection.deleteOne({ _id: own._id })
      return false
    }

    async function findBy(field: 'payload.uid' | 'payload.userCode', value: string) {
      if (typeof value !== 'string') return undefined
      const isEither = { $or: [{ [field]: hashToken(value) }, { [field]: value, ...IN_CLEAR }] }
      const found = await collection.findOne(isEither)
      return found ? openRecord(box, model, found) : undefined
    }

    return withUnavailable<AccountAdapter>({
      async upsert(id, payload, expiresIn) {
        const expiresAt = expiresIn
          ? { expiresAt: new Date(now().getTime() + expiresIn * 1000) }
          : {}
        const { _id, ...form } = ownForm(id, payload)
        const replaceable = { _id, ...REPLACEABLE[mayReplace(model)](now()) }
        try {
          await collection.replaceOne(replaceable, { ...form, ...expiresAt }, { upsert: true })
        } catch (error) {
          if (!isDuplicateKey(error) || mayReplace(model) === 'any') throw error
          if (!(await find(id))) throw error
          refuseUsed(model)
        }
      },
      find,
      findByUid: (uid) => findBy('payload.uid', uid),
      findByUserCode: (userCode) => findBy('payload.userCode', userCode),
      async consume(id) {
        const consumed = Math.floor(now().getTime() / 1000)
        const { matchedCount } = await collection.updateOne(
          { _id: ownId(id), ...NOT_CONSUMED },
          { $set: { 'payload.consumed': consumed } },
        )
        if (matchedCount === 1) return
        await refuseReuse(model, (await find(id))?.grantId, (name) => factory(name, box))
      },
      async destroy(id) {
        await collection.deleteMany(withId(id))
      },
      async revokeByGrantId(grantId) {
        await collection.deleteMany({ 'payload.grantId': grantId })
      },
      async destroyByAccountId(accountId, isEnded) {
        const fields = model === 'Interaction' ? LOGIN_ACCOUNTS : ['payload.accountId']
        const found = collection.find({ $or: fields.map((field) => ({ [field]: accountId })) })
        const ended: string[] = []
        for await (const record of found) {
          const payload = openRecord(box, model, record)
          if (payload && isEnded(payload)) ended.push(record._id)
        }
        if (ended.length === 0) return 0
        return (await collection.deleteMany({ _id: { $in: ended } })).deletedCount
      },
    })
  }

  // Clients never expire, and would be lost with the key that sealed their secrets.
  async function sealClients(box: SecretBox) {
    const clients = collectionOf('Client')
    const withSecret = {
      $or: [{ sealed: { $exists: true } }, { 'payload.client_secret': { $exists: true } }],
    }
    for await (const found of clients.find(withSecret)) {
      if (found.sealed !== undefined && box.isCurrent(found.sealed)) continue
      const payload = openRecord(box, 'Client', found)
      if (payload) {
        const { _id, ...form } = sealRecord(box, 'Client', found._id, payload)
        const { payload: inDatabase, sealed } = found
        const unchanged = {
          _id,
          payload: inDatabase,
          ...(sealed === undefined ? IN_CLEAR : { sealed }),
        }
        await clients.updateOne(unchanged, { $set: form })
      }
    }
  }

  const { start } = withUnavailable({
    async start(box?: SecretBox) {
      for (const model of MODELS) await createIndexes(collectionOf(model), indexesOf(model))
      if (records === 'sealed' && box) await sealClients(box)
    },
  })
  return Object.assign(factory, { start })
}

function falseIfDuplicate(error: unknown): false {
  if (isDuplicateKey(error)) return false
  throw error
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
