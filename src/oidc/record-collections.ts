import type { Collection, Db } from 'mongodb'
import type { SecretBox } from '../crypto/secret-box.ts'
import { createIndexes, type NamedIndex } from '../stores/mongodb/indexes.ts'
import { IDP_MODELS, OAUTH_MODELS } from './account-stamp.ts'
import { openRecord, sealRecord, type StoredRecord } from './sealed-records.ts'

export const MODELS = [
  ...OAUTH_MODELS,
  ...IDP_MODELS,
  'Client',
  'ClientCredentials',
  'InitialAccessToken',
  'RegistrationAccessToken',
  'PushedAuthorizationRequest',
  'ReplayDetection',
]
/** Models whose records may have no time to expire. */
const LASTING = ['Client', 'InitialAccessToken', 'RegistrationAccessToken']

/** As versions before the sealing wrote it. Without this, a hash that was read in the database would be an id. */
export const IN_CLEAR = { sealed: { $exists: false } }

/** Where the account of an interaction is. */
export const LOGIN_ACCOUNTS = [
  'payload.result.login.accountId',
  'payload.lastSubmission.login.accountId',
]

/** Where the records are. */
export interface Place {
  db: Db
  /** Checked. */
  prefix: string
}

export function collectionOf({ db, prefix }: Place, model: string): Collection<StoredRecord> {
  return db.collection(prefix + snakeCase(model), {
    readPreference: 'primary',
    writeConcern: { w: 'majority' },
    ignoreUndefined: true,
  })
}

/** Creates collections and indexes. @param box - seals anew what never expires. `undefined`: nothing is. */
export async function startCollections(place: Place, box: SecretBox | undefined): Promise<void> {
  for (const model of MODELS) await createIndexes(collectionOf(place, model), indexesOf(model))
  if (!box) return
  for (const model of LASTING) await sealAnew(collectionOf(place, model), model, box)
}

// What never expires would be lost with the key that sealed it.
async function sealAnew(collection: Collection<StoredRecord>, model: string, box: SecretBox) {
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
