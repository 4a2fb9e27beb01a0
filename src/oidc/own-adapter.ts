import type { AdapterPayload, InteractionResults } from 'oidc-provider'
import type { Clock } from '../clock.ts'
import type { SecretBox } from '../crypto/secret-box.ts'
import { hashToken } from '../crypto/token.ts'
import type { ProviderRecord, ProviderRecords } from '../ports/provider-records.ts'
import type { AccountAdapter } from './account-adapter.ts'
import { isUsedOnce, mayReplace, refuseReuse, refuseUsed } from './single-use.ts'

/** Ids that open nothing: admins look for clients by hand, and what was seen once is only compared. */
const ID_IN_CLEAR = new Set(['Client', 'ReplayDetection'])
/** Models whose records may have no time to expire. */
const LASTING = ['Client', 'InitialAccessToken', 'RegistrationAccessToken']
/** So many records that were found are known until they are consumed. */
const MOST_FOUND = 1_000

export interface OwnAdapterParts {
  records: ProviderRecords
  box: SecretBox
  clock: Pick<Clock, 'now'>
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

  async function findBy(field: 'uid' | 'userCode', value: string) {
    if (typeof value !== 'string') return undefined
    const all = await records.findBy(field, hashToken(value))
    return all
      .filter(isOurs)
      .map((record) => opened(parts, record))
      .find((payload) => payload !== undefined)
  }

  const remove = (all: ProviderRecord[]) => records.remove(all.map(({ id }) => id))

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

    findByUid: (uid) => findBy('uid', uid),
    findByUserCode: (userCode) => findBy('userCode', userCode),

    async consume(id) {
      const stored = storedId(model, id)
      const known = found.get(stored)
      found.delete(stored)
      if (await records.consume(known ?? stored, clock.now())) return
      await refuseReuse(model, (await records.find(stored))?.grantId, of)
    },

    destroy: (id) => records.remove([storedId(model, id)]),

    async revokeByGrantId(grantId) {
      await remove((await records.findBy('grantId', grantId)).filter(isOurs))
    },

    async destroyByAccountId(accountId, isEnded) {
      const ended = (await records.findBy('accountId', accountId)).filter((record) => {
        const payload = isOurs(record) && opened(parts, record)
        return payload && isEnded(payload)
      })
      await remove(ended)
      return ended.length
    },
  }
}

function remember(found: Map<string, ProviderRecord>, record: ProviderRecord) {
  found.set(record.id, record)
  const [oldest] = found.keys()
  if (found.size > MOST_FOUND && oldest !== undefined) found.delete(oldest)
}

/** Elsewhere the id itself opens what it names, so that the database holds its hash. */
const storedId = (model: string, id: string) =>
  `${model}:${ID_IN_CLEAR.has(model) ? id : hashToken(id)}`

const isOver = ({ clock }: OwnAdapterParts, { expiresAt }: ProviderRecord) =>
  expiresAt !== undefined && expiresAt <= clock.now()

function toRecord(
  { box, clock }: OwnAdapterParts,
  model: string,
  id: string,
  payload: AdapterPayload,
  expiresIn: number | undefined,
): ProviderRecord {
  const { grantId, uid, userCode, consumed } = payload
  const named = { id: storedId(model, id), model }
  return {
    ...named,
    expiresAt: expiresIn === undefined ? undefined : timeIn(clock, expiresIn),
    accountId: model === 'Interaction' ? loginOf(payload)?.accountId : payload.accountId,
    grantId,
    uid: uid === undefined ? undefined : hashToken(uid),
    userCode: userCode === undefined ? undefined : hashToken(userCode),
    consumedAt: typeof consumed === 'number' ? new Date(consumed * 1000) : undefined,
    ...sealed(box, named, payload),
  }
}

/** A client may choose the time of what it signs. Databases know four digits of a year. */
const timeIn = ({ now }: OwnAdapterParts['clock'], seconds: number) =>
  new Date(Math.min(now().getTime() + seconds * 1000, Date.UTC(9998)))

const loginOf = ({ result, lastSubmission }: AdapterPayload): InteractionResults['login'] =>
  result?.login ?? lastSubmission?.login

function sealed(
  box: SecretBox,
  { id, model }: Pick<ProviderRecord, 'id' | 'model'>,
  payload: AdapterPayload,
): Pick<ProviderRecord, 'clear' | 'sealed'> {
  const seal = (secret: object) => box.seal(JSON.stringify(secret), id)
  if (!ID_IN_CLEAR.has(model)) return { clear: undefined, sealed: seal(payload) }
  const { client_secret, ...clear } = payload
  return { clear, sealed: client_secret === undefined ? undefined : seal({ client_secret }) }
}

/** `undefined`: it is over, no key of the ring opens it, or it was altered. */
function opened(parts: OwnAdapterParts, record: ProviderRecord): AdapterPayload | undefined {
  if (isOver(parts, record)) return undefined
  const { id, clear, consumedAt } = record
  const secret = record.sealed === undefined ? '{}' : parts.box.open(record.sealed, id)
  if (secret === undefined) return undefined
  const payload: AdapterPayload = { ...clear, ...JSON.parse(secret) }
  return consumedAt ? { ...payload, consumed: Math.floor(consumedAt.getTime() / 1000) } : payload
}
