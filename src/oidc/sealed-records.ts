/** A record of oidc-provider as it lies in the store: who reads it there can use nothing of it. */
import type { AdapterPayload } from 'oidc-provider'
import { hashToken } from '../crypto/token.ts'
import type { ProviderRecord } from '../store/index.ts'
import { accountStamp } from './account-stamp.ts'
import type { OidcParts } from './parts.ts'

/** Ids that open nothing: admins look for clients by hand, and what was seen once is only compared. */
const ID_IN_CLEAR = new Set(['Client', 'ReplayDetection'])

export type SealedParts = Pick<OidcParts, 'box' | 'clock'>

/** Elsewhere the id itself opens what it names, so that the database holds its hash. */
export const storedId = (model: string, id: string) =>
  `${model}:${ID_IN_CLEAR.has(model) ? id : hashToken(id)}`

export const isOver = ({ clock }: SealedParts, { expiresAt }: ProviderRecord) =>
  expiresAt !== undefined && expiresAt <= clock.now()

export function toRecord(
  { box, clock }: SealedParts,
  model: string,
  id: string,
  payload: AdapterPayload,
  expiresIn: number | undefined,
): ProviderRecord {
  const { grantId, uid, userCode, consumed } = payload
  const named = { id: storedId(model, id), model }
  return {
    ...named,
    expiresAt: expiresIn === undefined ? undefined : timeIn(clock.now(), expiresIn),
    accountId: accountStamp(model, payload)?.accountId,
    grantId,
    uid: uid === undefined ? undefined : hashToken(uid),
    userCode: userCode === undefined ? undefined : hashToken(userCode),
    consumedAt: typeof consumed === 'number' ? new Date(consumed * 1000) : undefined,
    ...sealed(box, named, payload),
  }
}

/** A client may choose the time of what it signs. Databases know four digits of a year. */
const timeIn = (now: Date, seconds: number) =>
  new Date(Math.min(now.getTime() + seconds * 1000, Date.UTC(9998)))

export function sealed(
  box: OidcParts['box'],
  { id, model }: Pick<ProviderRecord, 'id' | 'model'>,
  payload: AdapterPayload,
): Pick<ProviderRecord, 'clear' | 'sealed'> {
  const seal = (secret: object) => box.seal(JSON.stringify(secret), id)
  if (!ID_IN_CLEAR.has(model)) return { clear: undefined, sealed: seal(payload) }
  const { client_secret, ...clear } = payload
  return { clear, sealed: client_secret === undefined ? undefined : seal({ client_secret }) }
}

/** `undefined`: it is over, no key of the ring opens it, or it was altered. */
export function opened(parts: SealedParts, record: ProviderRecord): AdapterPayload | undefined {
  if (isOver(parts, record)) return undefined
  const { id, model, consumedAt } = record
  const [clear, none] = ID_IN_CLEAR.has(model) ? [record.clear, '{}'] : []
  const secret = record.sealed === undefined ? none : parts.box.open(record.sealed, id)
  if (secret === undefined) return undefined
  const payload: AdapterPayload = { ...clear, ...JSON.parse(secret) }
  return consumedAt ? { ...payload, consumed: Math.floor(consumedAt.getTime() / 1000) } : payload
}
