import type { Collection, Db, Filter } from 'mongodb'
import type { AdapterPayload } from 'oidc-provider'
import { systemClock, type Clock } from '../clock.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import { hashToken } from '../crypto/token.ts'
import { isDuplicateKey } from '../stores/mongodb/errors.ts'
import { createIndexes, type NamedIndex } from '../stores/mongodb/indexes.ts'
import { withUnavailable } from '../stores/mongodb/unavailable.ts'
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
/** As an expression, and true of a record that is not there. */
const REPLACEABLE = {
  any: () => true,
  'not consumed': () => ({ $eq: [{ $type: '$payload.consumed' }, 'missing'] }),
  expired: (now: Date) => ({ $lte: ['$expiresAt', now] }),
}
/** Models whose records may have no time to expire. */
const LASTING = ['Client', 'InitialAccessToken', 'RegistrationAccessToken']
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
 * and says so in a warning.
 *
 * `flows.start()` creates its collections and indexes. It seals the secrets of clients that are still in clear, and seals anew, with the
 * first secret, what never expires.
 *
 * @param options.records - `clear` makes new records as version 0.1.0 did: for the time in which processes of that version share the
 *   database. Both forms are always read, and a record stays in the form in which it was made.
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
    if (!box)
      process.emitWarning(
        'mongoAdapter() stores records in clear: it has no keys. Call it in flows.adapter(…), and pass on the second argument',
      )

    const inClear = (id: string, payload: AdapterPayload) => ({ _id: id, payload })
    const sealed = (id: string, payload: AdapterPayload) =>
      box ? sealRecord(box, model, storedId(model, id), payload) : inClear(id, payload)
    // Whoever made a record has chosen its form, and it stays in one place.
    const [ownForm, otherForm] = records === 'sealed' ? [sealed, inClear] : [inClear, sealed]
    const withId = (id: string) => ({
      $or: [{ _id: storedId(model, id) }, { _id: id, ...IN_CLEAR }],
    })

    async function findWhere(filter: Filter<StoredRecord>) {
      const found = await collection.findOne(filter)
      return found ? openRecord(box, model, found) : undefined
    }

    const find = async (id: string) => (typeof id === 'string' ? findWhere(withId(id)) : undefined)

    const findBy = async (field: 'payload.uid' | 'payload.userCode', value: string) =>
      typeof value === 'string'
        ? findWhere({ $or: [{ [field]: hashToken(value) }, { [field]: value, ...IN_CLEAR }] })
        : undefined

    /** Answers the record before, or `null`. */
    async function replace(id: string, payload: AdapterPayload, expiresAt?: Date) {
      const [own, other] = [ownForm, otherForm].map((form) => ({
        $literal: { ...form(id, payload), ...(expiresAt && { expiresAt }) },
      }))
      const isOther = { $ne: ['$_id', { $literal: own?.$literal._id }] }
      const isThere = { $ne: [{ $type: '$_id' }, 'missing'] }
      const form = { $cond: [{ $and: [isThere, isOther] }, other, own] }
      const next = { $cond: [REPLACEABLE[mayReplace(model)](now()), form, '$$ROOT'] }
      return collection.findOneAndUpdate(withId(id), [{ $replaceWith: next }], {
        upsert: true,
        returnDocument: 'before',
        projection: { expiresAt: 1, 'payload.consumed': 1 },
      })
    }

    return withUnavailable<AccountAdapter>({
      async upsert(id, payload, expiresIn) {
        const expiresAt = expiresIn ? new Date(now().getTime() + expiresIn * 1000) : undefined
        // Of two who make it at the same time the later one finds it.
        const before = await replace(id, payload, expiresAt).catch((error: unknown) => {
          if (!isDuplicateKey(error)) throw error
          return replace(id, payload, expiresAt)
        })
        if (before && !isReplaceable(model, before, now())) refuseUsed(model)
      },
      find,
      findByUid: (uid) => findBy('payload.uid', uid),
      findByUserCode: (userCode) => findBy('payload.userCode', userCode),
      async consume(id) {
        const consumed = Math.floor(now().getTime() / 1000)
        const { matchedCount } = await collection.updateOne(
          { ...withId(id), ...NOT_CONSUMED },
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

  // What never expires would be lost with the key that sealed it.
  async function sealAnew(box: SecretBox, model: string) {
    const collection = collectionOf(model)
    const isSealedOrSecret = [
      { sealed: { $exists: true } },
      { 'payload.client_secret': { $exists: true } },
    ]
    const lasting = collection.find({ expiresAt: { $exists: false }, $or: isSealedOrSecret })
    for await (const found of lasting) {
      const { _id, sealed } = found
      if (sealed !== undefined && box.isCurrent(sealed)) continue
      const payload = openRecord(box, model, found)
      if (!payload) continue
      const unchanged = {
        _id,
        payload: found.payload,
        ...(sealed === undefined ? IN_CLEAR : { sealed }),
      }
      await collection.replaceOne(unchanged, sealRecord(box, model, _id, payload))
    }
  }

  const { start } = withUnavailable({
    async start(box?: SecretBox) {
      for (const model of MODELS) await createIndexes(collectionOf(model), indexesOf(model))
      if (records === 'clear' || !box) return
      for (const model of LASTING) await sealAnew(box, model)
    },
  })
  return Object.assign(factory, { start })
}

function isReplaceable(model: string, { payload, expiresAt }: StoredRecord, at: Date): boolean {
  const those = mayReplace(model)
  if (those === 'expired') return expiresAt !== undefined && expiresAt <= at
  return those === 'any' || payload?.consumed === undefined
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
