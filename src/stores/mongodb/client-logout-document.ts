import type { ClientLogout, ClientLogoutState, NewClientLogout } from '../../ports/index.ts'
import { newLogout } from '../state/client-logouts.ts'
import { text, time } from './conditions.ts'
import { type Fields, hasTypes } from './values.ts'

const types = {
  _id: 'string',
  end_id: 'string',
  account_id: 'string',
  client_id: 'string',
  state: 'string',
  requested_at: 'date',
  expires_at: 'date',
  attempts: 'int',
} as const

/** `reason`: why the last attempt failed. */
const optionalTypes = { sid: 'string', reason: 'string' } as const

export interface ClientLogoutDocument extends Fields<typeof types, typeof optionalTypes> {
  state: ClientLogoutState
  /** Nobody may claim it before: the end of the lease, or of the pause before another attempt. */
  available_at: Date
  lease_id?: string
  /** Its account was. */
  forgotten?: true
  purge_at: Date
}

export const isReadable = (document: ClientLogoutDocument) =>
  hasTypes(document, types, optionalTypes)

export function toLogoutDocument(logout: NewClientLogout): ClientLogoutDocument {
  const { sid, state, attempts, purgeAt } = newLogout(logout)
  return {
    _id: text(logout.id),
    end_id: text(logout.endId),
    account_id: text(logout.accountId),
    client_id: text(logout.clientId),
    ...(sid !== undefined && { sid: text(sid) }),
    state,
    requested_at: time(logout.requestedAt),
    expires_at: time(logout.expiresAt),
    available_at: logout.requestedAt,
    attempts,
    purge_at: purgeAt,
  }
}

export function fromLogoutDocument(document: ClientLogoutDocument): ClientLogout {
  return {
    id: document._id,
    endId: document.end_id,
    accountId: document.account_id,
    clientId: document.client_id,
    sid: document.sid,
    canBeTold: document.state !== 'untold',
    requestedAt: document.requested_at,
    expiresAt: document.expires_at,
    state: document.state,
    attempts: document.attempts,
    reason: document.reason,
    isForgotten: document.forgotten === true,
  }
}
