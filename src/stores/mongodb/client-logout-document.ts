import type { ClientLogout, ClientLogoutState, NewClientLogout } from '../../ports/index.ts'
import { newLogout } from '../state/client-logouts.ts'
import { text } from './conditions.ts'
import { type DocumentOf, fromDocument, hasTypes, toDocument } from './fields.ts'

/** `reason`: why the last attempt failed. */
const types = {
  id: 'string',
  endId: 'string',
  accountId: 'string',
  clientId: 'string',
  sid: 'string|undefined',
  state: 'string',
  requestedAt: 'date',
  expiresAt: 'date',
  attempts: 'int',
  reason: 'string|undefined',
} as const

export interface ClientLogoutDocument extends DocumentOf<typeof types> {
  state: ClientLogoutState
  /** Nobody may claim it before: the end of the lease, or of the pause before another attempt. */
  available_at: Date
  lease_id?: string
  /** Its account was. */
  forgotten?: true
  purge_at: Date
}

export const isReadable = (document: ClientLogoutDocument) => hasTypes(document, types)

export function toLogoutDocument(logout: NewClientLogout): ClientLogoutDocument {
  const { id, endId, accountId, clientId, sid = '' } = logout
  for (const each of [id, endId, accountId, clientId, sid]) text(each)
  const { purgeAt, ...first } = newLogout(logout)
  return {
    ...toDocument(first, types),
    state: first.state,
    available_at: logout.requestedAt,
    purge_at: purgeAt,
  }
}

export function fromLogoutDocument(document: ClientLogoutDocument): ClientLogout {
  const { state, forgotten } = document
  return {
    ...fromDocument(document, types),
    state,
    canBeTold: state !== 'untold',
    isForgotten: forgotten === true,
  }
}
