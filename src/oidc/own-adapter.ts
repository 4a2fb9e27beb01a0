import { errors, type AdapterPayload } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import { hashToken } from '../crypto/token.ts'
import { setNewest } from '../store/bounded-map.ts'
import type { ProviderRecord } from '../store/provider-records.ts'
import { pagesOf, type Table } from '../store/table.ts'
import { OAUTH_MODELS, accountStamp, type AccountAdapter } from './account-records.ts'

/** Models whose records may never expire. */
const LASTING = ['Client', 'InitialAccessToken', 'RegistrationAccessToken']
/** Models whose records are used once: the first `consume` wins, and no later `upsert` makes them fresh again. */
const CONSUMED_ONCE = new Set([
  'AuthorizationCode',
  'RefreshToken',
  'DeviceCode',
  'BackchannelAuthenticationRequest',
  'PreAuthorizedCode',
  'PushedAuthorizationRequest',
])

/** The most records that are remembered from `find` until `consume`. */
const MAX_FOUND = 1_000
const PAGE = 1_000

interface Parts {
  providerRecords: Table<ProviderRecord>
  box: SecretBox
  clock: Clock
}

export type OwnAdapter = ReturnType<typeof createOwnAdapter>

/** Keeps the records of oidc-provider: the id hashed, and all that it does not search by sealed with the first secret. */
export function createOwnAdapter(parts: Parts) {
  const found = new Map<string, ProviderRecord>()
  return {
    of: (model: string) => adapterOf(parts, model, found),

    /** Seals records that never expire anew, with the first secret. Otherwise they would be lost with the older secret that sealed them. */
    async start() {
      const { providerRecords: records, box } = parts
      const sealAnew = async (record: ProviderRecord) => {
        if (box.isCurrent(record.sealed)) return
        const payload = opened(parts, record)
        const anew = payload && { ...record, sealed: sealed(box, record.id, payload) }
        // One that is gone, or that another process has sealed anew, stays as it is.
        if (anew) await records.update(record, (now) => (now.sealed === record.sealed ? anew : now))
      }
      for (const beginning of LASTING.map((model) => `${model}:`))
        for await (const page of pagesOf(records, { after: { id: beginning }, limit: PAGE })) {
          const own = page.filter(({ id }) => id.startsWith(beginning))
          await Promise.all(own.map(sealAnew))
          if (own.length < page.length) break
        }
    },
  }
}

function adapterOf(
  parts: Parts,
  model: string,
  found: Map<string, ProviderRecord>,
): AccountAdapter {
  const { providerRecords: records, clock } = parts

  return {
    async upsert(id, payload, expiresIn) {
      const record = toRecord(parts, model, id, payload, expiresIn)
      const isOnce = CONSUMED_ONCE.has(model)
      if (!isOnce && model !== 'ReplayDetection') return records.overwrite(record)
      const isSaved = await records.save(record, (before) => {
        const mayReplace = isOnce ? !before.consumedAt : isOver(parts, before)
        return mayReplace ? record : undefined
      })
      if (!isSaved) refuseUsed(model)
    },

    async find(id) {
      if (typeof id !== 'string') return undefined
      const record = await records.getReadable(storedId(model, id))
      if (record && CONSUMED_ONCE.has(model)) setNewest(found, record.id, record, MAX_FOUND)
      return record && opened(parts, record)
    },

    findByUid: (uid) => findNewest(parts, model, 'uid', uid),
    findByUserCode: (userCode) => findNewest(parts, model, 'userCode', userCode),

    async consume(id) {
      const stored = storedId(model, id)
      const known = found.get(stored)
      found.delete(stored)
      const consumedAt = clock.now()
      const isFirst = await records.update(known ?? stored, (record) =>
        record.consumedAt ? record : { ...record, consumedAt },
      )
      if (isFirst) return
      const { grantId } = (await records.getReadable(stored)) ?? {}
      // A second use at the same moment as the first ends the whole grant (RFC 6749, 4.1.2; RFC 9700, 4.14). oidc-provider does the same
      // for a later use. The grant is removed first: without it, all that the first use still makes is dead.
      if (grantId !== undefined) {
        await records.remove(storedId('Grant', grantId))
        await revoke(records, grantId, OAUTH_MODELS)
      }
      refuseUsed(model)
    },

    destroy: (id) => records.remove(storedId(model, id)),

    revokeByGrantId: (grantId) => revoke(records, grantId, [model]),

    async destroyByAccountId(accountId, isEnded) {
      let count = 0
      const left = (record: ProviderRecord) => {
        const payload = opened(parts, record)
        return payload && isEnded(payload) ? undefined : record
      }
      const ofAccount = { equal: { accountId }, after: { id: '' }, limit: PAGE }
      for await (const page of pagesOf(records, ofAccount)) {
        const ended = page.filter((record) => record.model === model && !left(record))
        count += await records.updateAll(ended, left)
      }
      return count
    },
  }
}

async function revoke(records: Table<ProviderRecord>, grantId: string, models: string[]) {
  const ofGrant = { equal: { grantId }, after: { id: '' }, limit: PAGE }
  for await (const page of pagesOf(records, ofGrant)) {
    const own = page.filter(({ model }) => models.includes(model))
    await records.updateAll(own, (now) => (now.grantId === grantId ? undefined : now))
  }
}

/** Finds the newest of two sessions with one uid: an older request may have saved an earlier session again. */
async function findNewest(parts: Parts, model: string, field: 'uid' | 'userCode', value: string) {
  if (typeof value !== 'string') return undefined
  const equal = { [field]: hashToken(value) }
  const found = await parts.providerRecords.find({ equal, limit: PAGE })
  return found
    .filter((record) => record.model === model)
    .toSorted((one, other) => Number(other.expiresAt) - Number(one.expiresAt))
    .map((record) => opened(parts, record))
    .find((payload) => payload !== undefined)
}

/** @throws an error of oidc-provider, which becomes the answer of the token or authorization endpoint. */
function refuseUsed(model: string): never {
  if (model === 'ReplayDetection') throw new errors.InvalidRequest('the JWT was already used')
  if (model === 'PushedAuthorizationRequest')
    throw new errors.InvalidRequestUri('request_uri is invalid, expired, or was already used')
  throw new errors.InvalidGrant('it was already used')
}

/** Most ids open what they name, so the database holds only their hash. */
const storedId = (model: string, id: string) => `${model}:${hashToken(id)}`

const isOver = ({ clock }: Parts, { expiresAt }: ProviderRecord) =>
  expiresAt !== undefined && expiresAt <= clock.now()

function toRecord(
  { box, clock }: Parts,
  model: string,
  id: string,
  payload: AdapterPayload,
  expiresIn: number | undefined,
): ProviderRecord {
  const { grantId, uid, userCode, consumed } = payload
  const stored = storedId(model, id)
  return {
    id: stored,
    model,
    expiresAt: expiresIn === undefined ? undefined : timeIn(clock.now(), expiresIn),
    accountId: accountStamp(model, payload)?.accountId,
    grantId,
    uid: uid === undefined ? undefined : hashToken(uid),
    userCode: userCode === undefined ? undefined : hashToken(userCode),
    consumedAt: typeof consumed === 'number' ? new Date(consumed * 1000) : undefined,
    sealed: sealed(box, stored, payload),
  }
}

/** Caps a time at the year 9998: a client may choose the time of what it signs, and databases know four digits of a year. */
const timeIn = (now: Date, seconds: number) =>
  new Date(Math.min(now.getTime() + seconds * 1000, Date.UTC(9998)))

const sealed = (box: SecretBox, id: string, payload: AdapterPayload) =>
  box.seal(JSON.stringify(payload), id)

/** `undefined`: the record has expired, no key of the ring opens it, or it was altered. */
function opened(parts: Parts, record: ProviderRecord): AdapterPayload | undefined {
  if (isOver(parts, record)) return undefined
  const { id, consumedAt } = record
  const json = parts.box.open(record.sealed, id)
  if (json === undefined) return undefined
  const payload: AdapterPayload = JSON.parse(json)
  return consumedAt ? { ...payload, consumed: Math.floor(consumedAt.getTime() / 1000) } : payload
}
