import type { ClientLogout, ClientLogoutState, NewClientLogout } from '../../ports/index.ts'
import { newLogout } from '../state/client-logouts.ts'
import { text, time } from './conditions.ts'
import { type FieldTypes, hasTypes } from './values.ts'

/** A document of `client_logouts`. */
export interface ClientLogoutDocument {
  _id: string
  end_id: string
  account_id: string
  client_id: string
  sid?: string
  state: ClientLogoutState
  requested_at: Date
  expires_at: Date
  /** Nobody may claim it before: the end of the lease, or of the pause before another attempt. */
  available_at: Date
  attempts: number
  lease_id?: string
  /** Why the last attempt failed. */
  reason?: string
  purge_at: Date
}

const types: FieldTypes = {
  _id: 'string',
  end_id: 'string',
  account_id: 'string',
  client_id: 'string',
  state: 'string',
  requested_at: 'date',
  expires_at: 'date',
  attempts: 'int',
}

export const isReadable = (document: ClientLogoutDocument) =>
  hasTypes(document, types, { sid: 'string', reason: 'string' })

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
  }
}
