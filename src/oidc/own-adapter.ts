import { hashToken } from '../crypto/token.ts'
import type { ProviderRecord, ProviderRecords } from '../records/index.ts'
import type { AccountAdapter } from './account-adapter.ts'
import { isOver, opened, sealed, type SealedParts, storedId, toRecord } from './sealed-records.ts'
import { isUsedOnce, mayReplace, refuseReuse, refuseUsed } from './single-use.ts'

/** Models whose records may have no time to expire. */
const LASTING = ['Client', 'InitialAccessToken', 'RegistrationAccessToken']
/** So many records that were found are known until they are consumed. */
const MOST_FOUND = 1_000

export interface OwnAdapterParts extends SealedParts {
  records: ProviderRecords
}

export type OwnAdapter = ReturnType<typeof createOwnAdapter>

/**
 * Keeps the records of oidc-provider in the store of the flows. The id of a record is hashed, and all but what it is looked for by is
 * sealed with the first secret. Of a client only its secret is sealed.
 */
export function createOwnAdapter(parts: OwnAdapterParts) {
  const found = new Map<string, ProviderRecord>()
  const of = (model: string): AccountAdapter => adapterOf(parts, model, found, of)
  return {
    of,

    /** Seals anew, with the first secret, what never expires: it would be lost with the secret that sealed it. */
    async start() {
      const { records, box } = parts
      const isOld = ({ sealed }: ProviderRecord) => sealed !== undefined && !box.isCurrent(sealed)
      const sealAnew = async (record: ProviderRecord) => {
        const payload = isOld(record) && opened(parts, record)
        if (!payload) return
        const next = { ...record, ...sealed(box, record, payload) }
        await records.reseal(record, next)
      }
      for (const model of LASTING)
        await records.findAll(`${model}:`, (page) => Promise.all(page.map(sealAnew)))
    },
  }
}

function adapterOf(
  parts: OwnAdapterParts,
  model: string,
  found: Map<string, ProviderRecord>,
  of: (model: string) => AccountAdapter,
): AccountAdapter {
  const { records, clock } = parts
  const isOurs = (record: ProviderRecord) => record.model === model

  return {
    async upsert(id, payload, expiresIn) {
      const record = toRecord(parts, model, id, payload, expiresIn)
      const may = mayReplace(model)
      if (may === 'any') return records.overwrite(record)
      const isSaved = await records.save(record, (before) =>
        may === 'expired' ? isOver(parts, before) : !before.consumedAt,
      )
      if (!isSaved) refuseUsed(model)
    },

    async find(id) {
      if (typeof id !== 'string') return undefined
      const record = await records.find(storedId(model, id))
      if (record && isUsedOnce(model)) remember(found, record)
      return record && opened(parts, record)
    },

    findByUid: (uid) => findNewest(parts, model, 'uid', uid),
    findByUserCode: (userCode) => findNewest(parts, model, 'userCode', userCode),

    async consume(id) {
      const stored = storedId(model, id)
      const known = found.get(stored)
      found.delete(stored)
      if (await records.consume(known ?? stored, clock.now())) return
      await refuseReuse(model, (await records.find(stored))?.grantId, of)
    },

    destroy: (id) => records.remove(storedId(model, id)),

    async revokeByGrantId(grantId) {
      await records.findBy('grantId', grantId, (page) =>
        records.removeFound(page.filter(isOurs), (record) => record.grantId === grantId),
      )
    },

    async destroyByAccountId(accountId, isEnded) {
      let count = 0
      const isToGo = (record: ProviderRecord) => {
        const payload = opened(parts, record)
        return payload !== undefined && isEnded(payload)
      }
      await records.findBy('accountId', accountId, async (page) => {
        count += await records.removeFound(page.filter(isOurs).filter(isToGo), isToGo)
      })
      return count
    },
  }
}

/** Of two sessions with one uid: an older request may have saved the one of before. */
async function findNewest(
  parts: OwnAdapterParts,
  model: string,
  field: 'uid' | 'userCode',
  value: string,
) {
  if (typeof value !== 'string') return undefined
  const all: ProviderRecord[] = []
  await parts.records.findBy(field, hashToken(value), async (page) => all.push(...page))
  return all
    .filter((record) => record.model === model)
    .toSorted((one, other) => Number(other.expiresAt) - Number(one.expiresAt))
    .map((record) => opened(parts, record))
    .find((payload) => payload !== undefined)
}

function remember(found: Map<string, ProviderRecord>, record: ProviderRecord) {
  found.set(record.id, record)
  const [oldest] = found.keys()
  if (found.size > MOST_FOUND && oldest !== undefined) found.delete(oldest)
}
