import type { PendingLogin } from '../../ports/index.ts'
import { carriedBy } from '../../ports/carried-query.ts'
import { parseCapturedRequest } from '../state/captured-request.ts'
import { toCarriedFields } from './carried.ts'
import { time } from './conditions.ts'
import { type FieldTypes, hasTypes } from './values.ts'

/** A document of `pending_logins`. */
export interface PendingLoginDocument {
  _id: string
  account_id: string
  email?: string
  password_digest: string
  /** JSON: any name of a parameter is stored as it is, be it with dots or dollars. */
  captured: string
  browser_hash?: string
  user_agent?: string
  is_held?: true
  client_id?: string
  redirect_uri?: string
  state?: string
  created_at: Date
  verified_at?: Date
  continued_at?: Date
  /** The name of the turn that set it. */
  continued_by?: string
  purge_at: Date
}

const types: FieldTypes = {
  _id: 'string',
  account_id: 'string',
  password_digest: 'string',
  captured: 'string',
  created_at: 'date',
  purge_at: 'date',
}

const optionalTypes: FieldTypes = {
  email: 'string',
  browser_hash: 'string',
  user_agent: 'string',
  verified_at: 'date',
  continued_at: 'date',
}

export function toDocument(login: PendingLogin): Omit<PendingLoginDocument, '_id'> {
  const { scope: _, ...searched } = carriedBy(login.captured)
  return {
    account_id: login.accountId,
    ...(login.email !== undefined && { email: login.email }),
    password_digest: login.passwordDigest,
    captured: JSON.stringify(login.captured),
    ...(login.browserHash !== undefined && { browser_hash: login.browserHash }),
    ...(login.userAgent !== undefined && { user_agent: login.userAgent }),
    ...(login.isHeld && { is_held: true as const }),
    ...toCarriedFields(searched),
    created_at: time(login.createdAt),
    ...(login.verifiedAt && { verified_at: time(login.verifiedAt) }),
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
      userAgent: document.user_agent,
      ...(document.is_held !== undefined && { isHeld: true as const }),
      createdAt: document.created_at,
      verifiedAt: document.verified_at,
      continuedAt: document.continued_at,
      purgeAt: document.purge_at,
    }
  )
}
