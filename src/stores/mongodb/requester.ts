import type { Requester } from '../../ports/index.ts'
import type { Fields } from './values.ts'

export const requesterTypes = {
  address: 'string',
  user_agent: 'string',
  ui_locales: 'string',
  accept_language: 'string',
  by_admin: 'bool',
} as const

export type RequesterFields = Fields<{}, typeof requesterTypes>

/** What is audited of whoever sent a request. */
export type SenderFields = Pick<RequesterFields, 'address' | 'user_agent'>

export function toSenderFields({ address, userAgent }: Partial<Requester>): SenderFields {
  return {
    ...(address !== undefined && { address }),
    ...(userAgent !== undefined && { user_agent: userAgent }),
  }
}

export function toRequesterFields(requester: Requester): RequesterFields {
  const { uiLocales, acceptLanguage, isAdmin } = requester
  return {
    ...toSenderFields(requester),
    ...(uiLocales !== undefined && { ui_locales: uiLocales }),
    ...(acceptLanguage !== undefined && { accept_language: acceptLanguage }),
    ...(isAdmin !== undefined && { by_admin: isAdmin }),
  }
}

export function fromRequesterFields(fields: RequesterFields): Requester {
  const { ui_locales: uiLocales, accept_language: acceptLanguage, by_admin: isAdmin } = fields
  return {
    address: fields.address,
    userAgent: fields.user_agent,
    ...(uiLocales !== undefined && { uiLocales }),
    ...(acceptLanguage !== undefined && { acceptLanguage }),
    ...(isAdmin !== undefined && { isAdmin }),
  }
}
