import type { Collection, Db, Filter } from 'mongodb'
import type { AdapterPayload } from 'oidc-provider'
import { systemClock, type Clock } from '../clock.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import { hashToken } from '../crypto/token.ts'
import { checkPrefix, type MongoOptions } from '../stores/mongodb/collection.ts'
import { isDuplicateKey } from '../stores/mongodb/errors.ts'
import { withUnavailable } from '../stores/mongodb/unavailable.ts'
import type { AccountAdapter } from './account-adapter.ts'
import { collectionOf, IN_CLEAR, LOGIN_ACCOUNTS, startCollections } from './record-collections.ts'
import { openRecord, sealRecord, storedId, type StoredRecord } from './sealed-records.ts'
import { expectReplaceable, mayReplace, refuseReuse } from './single-use.ts'

const NOT_CONSUMED = { 'payload.consumed': { $exists: false } }
/** As an expression, and true of a record that is not there. */
const REPLACEABLE = {
  any: () => true,
  'not consumed': () => ({ $eq: [{ $type: '$payload.consumed' }, 'missing'] }),
  expired: (now: Date) => ({ $lte: ['$expiresAt', now] }),
}

type MongoAdapterOptions = MongoOptions & { records?: 'sealed' | 'clear' }

type MongoAdapterFactory = ((model: string, box?: SecretBox) => AccountAdapter) & {
  start(box?: SecretBox): Promise<void>
}

/** The records of one model. */
interface Records {
  model: string
  collection: Collection<StoredRecord>
  box: SecretBox | undefined
  /** The form of new records, and the other one. */
  forms: readonly [Form, Form]
  now: Clock['now']
}

type Form = (
  id: string,
  payload: AdapterPayload,
) => Pick<StoredRecord, '_id' | 'payload' | 'sealed'>

/**
 * oidc-provider's records on MongoDB: one collection a model, in snake_case, documents `{ _id, payload, sealed, expiresAt }`, removed
 * by a TTL index. `_id` is the SHA-256 of the id, in hex; `payload` holds the fields for look-ups, such as `accountId`. All else is
 * `sealed` with the first secret of the flows. A client keeps its `client_id`, and all but its secret is in clear.
 * Reads see every write that was answered before.
 *
 * `flows.adapter` hands it the keys; what you wrap around it passes the second argument on. Without keys it stores records in clear,
 * and says so in a warning.
 *
 * `flows.start()` creates its collections and indexes. It seals the secrets of clients that are still in clear, and seals anew, with the
 * first secret, what never expires.
 *
 * @param options.prefix - what the names of the collections begin with, as that of `mongoStore`.
 * @param options.records - `clear` makes new records as version 0.1.0 did: for the time in which processes of that version share the
 *   database. Both forms are always read, and a record stays in the form in which it was made.
 */
export function mongoAdapter(
  db: Db,
  { now = systemClock.now, prefix, records = 'sealed' }: MongoAdapterOptions = {},
): MongoAdapterFactory {
  const place = { db, prefix: checkPrefix(prefix) }
  const factory = (model: string, box?: SecretBox): AccountAdapter => {
    if (!box)
      process.emitWarning(
        'mongoAdapter() has no keys, so it stores records unencrypted. Call it in flows.adapter(…), and pass the second argument on',
      )
    const sealed: Form = (id, payload) =>
      box ? sealRecord(box, model, storedId(model, id), payload) : inClear(id, payload)
    const forms = records === 'sealed' ? ([sealed, inClear] as const) : ([inClear, sealed] as const)
    const own = { model, collection: collectionOf(place, model), box, forms, now }
    return adapterOf(own, (name) => factory(name, box))
  }

  const { start } = withUnavailable({
    start: (box?: SecretBox) => startCollections(place, records === 'sealed' ? box : undefined),
  })
  return Object.assign(factory, { start })
}

function adapterOf(records: Records, ofModel: (model: string) => AccountAdapter): AccountAdapter {
  const { model, collection, now } = records
  return withUnavailable<AccountAdapter>({
    async upsert(id, payload, expiresIn) {
      const expiring = expiresIn ? { expiresAt: new Date(now().getTime() + expiresIn * 1000) } : {}
      // Of two who make it at the same time the later one finds it.
      const before = await replace(records, id, payload, expiring).catch((error: unknown) => {
        if (!isDuplicateKey(error)) throw error
        return replace(records, id, payload, expiring)
      })
      if (!before) return
      const { expiresAt, payload: former } = before
      expectReplaceable(model, expiresAt !== undefined && expiresAt <= now(), former)
    },
    find: (id) => find(records, id),
    findByUid: (uid) => findBy(records, 'payload.uid', uid),
    findByUserCode: (userCode) => findBy(records, 'payload.userCode', userCode),
    async consume(id) {
      const consumed = Math.floor(now().getTime() / 1000)
      const { matchedCount } = await collection.updateOne(
        { ...withId(model, id), ...NOT_CONSUMED },
        { $set: { 'payload.consumed': consumed } },
      )
      if (matchedCount === 1) return
      await refuseReuse(model, (await find(records, id))?.grantId, ofModel)
    },
    async destroy(id) {
      await collection.deleteMany(withId(model, id))
    },
    async revokeByGrantId(grantId) {
      await collection.deleteMany({ 'payload.grantId': grantId })
    },
    destroyByAccountId: (accountId, isEnded) => destroyEnded(records, accountId, isEnded),
  })
}

const inClear: Form = (id, payload) => ({ _id: id, payload })

const withId = (model: string, id: string) => ({
  $or: [{ _id: storedId(model, id) }, { _id: id, ...IN_CLEAR }],
})

async function find(records: Records, id: string) {
  return typeof id === 'string' ? findWhere(records, withId(records.model, id)) : undefined
}

async function findBy(records: Records, field: 'payload.uid' | 'payload.userCode', value: string) {
  return typeof value === 'string'
    ? findWhere(records, { $or: [{ [field]: hashToken(value) }, { [field]: value, ...IN_CLEAR }] })
    : undefined
}

async function findWhere({ collection, box, model }: Records, filter: Filter<StoredRecord>) {
  const found = await collection.findOne(filter)
  return found ? openRecord(box, model, found) : undefined
}

/** Answers the record before, or `null`. Whoever made a record has chosen its form, and it stays in one place while it is there. */
async function replace(
  records: Records,
  id: string,
  payload: AdapterPayload,
  expiring: Pick<StoredRecord, 'expiresAt'>,
): Promise<StoredRecord | null> {
  const [own, other] = records.forms
  const next = { ...own(id, payload), ...expiring }
  const before = await write(records, id, next, true)
  if (!before || before._id === next._id) return before
  const inOther = await write(records, id, { ...other(id, payload), ...expiring }, false)
  // Without, it was removed in between.
  return inOther ?? replace(records, id, payload, expiring)
}

/** Leaves one of the other form as it is. */
function write(
  { model, collection, now }: Records,
  id: string,
  next: StoredRecord,
  upsert: boolean,
) {
  const isOfForm = { $in: [{ $ifNull: ['$_id', null] }, [null, { $literal: next._id }]] }
  const mayBe = { $and: [REPLACEABLE[mayReplace(model)](now()), isOfForm] }
  const update = [{ $replaceWith: { $cond: [mayBe, { $literal: next }, '$$ROOT'] } }]
  return collection.findOneAndUpdate(withId(model, id), update, {
    upsert,
    returnDocument: 'before',
    projection: { expiresAt: 1, 'payload.consumed': 1 },
  })
}

async function destroyEnded(
  { model, collection, box }: Records,
  accountId: string,
  isEnded: (payload: AdapterPayload) => boolean,
) {
  const fields = model === 'Interaction' ? LOGIN_ACCOUNTS : ['payload.accountId']
  const found = collection.find({ $or: fields.map((field) => ({ [field]: accountId })) })
  const ended: string[] = []
  for await (const record of found) {
    const payload = openRecord(box, model, record)
    if (payload && isEnded(payload)) ended.push(record._id)
  }
  if (ended.length === 0) return 0
  return (await collection.deleteMany({ _id: { $in: ended } })).deletedCount
}
