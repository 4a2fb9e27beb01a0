import type { PendingLogin } from '../../ports/index.ts'
import { carriedBy } from '../../ports/carried-query.ts'
import { parseCapturedRequest } from '../state/captured-request.ts'
import { type CarriedFields, toCarriedFields } from './carried.ts'
import { time } from './conditions.ts'
import { type Fields, hasTypes } from './values.ts'

const types = {
  _id: 'string',
  account_id: 'string',
  password_digest: 'string',
  /** JSON: any name of a parameter is stored as it is, be it with dots or dollars. */
  captured: 'string',
  created_at: 'date',
  purge_at: 'date',
} as const

const optionalTypes = { email: 'string', browser_hash: 'string', continued_at: 'date' } as const

export interface PendingLoginDocument
  extends Fields<typeof types, typeof optionalTypes>, Omit<CarriedFields, 'scope'> {
  /** The name of the turn that set `continued_at`. */
  continued_by?: string
}

export function toDocument(login: PendingLogin): Omit<PendingLoginDocument, '_id'> {
  const { scope: _, ...searched } = carriedBy(login.captured)
  return {
    account_id: login.accountId,
    ...(login.email !== undefined && { email: login.email }),
    password_digest: login.passwordDigest,
    captured: JSON.stringify(login.captured),
    ...(login.browserHash !== undefined && { browser_hash: login.browserHash }),
    ...toCarriedFields(searched),
    created_at: time(login.createdAt),
    ...(login.continuedAt && { continued_at: time(login.continuedAt) }),
    purge_at: time(login.purgeAt),
  }
}

export function toPendingLogin(document: PendingLoginDocument): PendingLogin | undefined {
  if (!hasTypes(document, types, optionalTypes)) return undefined
  const captured = parseCapturedRequest(document.captured)
  return (
    captured && {
      id: document._id,
      accountId: document.account_id,
      email: document.email,
      passwordDigest: document.password_digest,
      captured,
      browserHash: document.browser_hash,
      createdAt: document.created_at,
      continuedAt: document.continued_at,
      purgeAt: document.purge_at,
    }
  )
}
