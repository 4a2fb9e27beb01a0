import type { AdapterPayload, InteractionResults } from 'oidc-provider'
import type { SecretBox } from '../crypto/secret-box.ts'
import { hashToken } from '../crypto/token.ts'

/** A record of oidc-provider as it lies in the database: whoever reads it there can use nothing of it. */
export interface StoredRecord {
  _id: string
  /** What records are looked for by, `uid` and `userCode` as hashes. All of it, where nothing is `sealed`. */
  payload: AdapterPayload
  /** The payload as a JWE; of a client, its secret. */
  sealed?: string
  expiresAt?: Date
}

/** Ids that open nothing: admins look for clients by hand, and what was seen once is only compared. */
const ID_IN_CLEAR = new Set(['Client', 'ReplayDetection'])

/** Elsewhere the id itself opens what it names, so that the database holds its hash. */
export function storedId(model: string, id: string): string {
  return ID_IN_CLEAR.has(model) ? id : hashToken(id)
}

/** @param _id - as it is stored. */
export function sealRecord(
  box: SecretBox,
  model: string,
  _id: string,
  payload: AdapterPayload,
): Pick<StoredRecord, '_id' | 'payload' | 'sealed'> {
  const [secret, rest] = ID_IN_CLEAR.has(model)
    ? withoutClientSecret(payload)
    : [payload, lookedForBy(payload)]
  if (secret === undefined) return { _id, payload }
  return { _id, payload: rest, sealed: box.seal(JSON.stringify(secret), `${model} ${_id}`) }
}

/** `undefined`: no key of the ring opens it, or it was altered. */
export function openRecord(
  box: SecretBox | undefined,
  model: string,
  { _id, payload, sealed }: StoredRecord,
): AdapterPayload | undefined {
  if (sealed === undefined) return payload
  const opened = box?.open(sealed, `${model} ${_id}`)
  if (opened === undefined) return undefined
  const secret: AdapterPayload = JSON.parse(opened)
  if (ID_IN_CLEAR.has(model)) return { ...payload, ...secret }
  const { consumed } = payload
  return consumed === undefined ? secret : Object.assign(secret, { consumed })
}

function withoutClientSecret({ client_secret, ...rest }: AdapterPayload) {
  return [client_secret === undefined ? undefined : { client_secret }, rest] as const
}

function lookedForBy(payload: AdapterPayload): AdapterPayload {
  const { accountId, grantId, consumed, uid, userCode, result, lastSubmission } = payload
  return {
    accountId,
    grantId,
    consumed,
    uid: uid === undefined ? uid : hashToken(uid),
    userCode: userCode === undefined ? userCode : hashToken(userCode),
    result: accountOf(result?.login),
    lastSubmission: accountOf(lastSubmission?.login),
  }
}

function accountOf(login: InteractionResults['login']): InteractionResults | undefined {
  return login && { login: { accountId: login.accountId } }
}
