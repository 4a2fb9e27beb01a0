import type { Requester } from '../../ports/index.ts'
import { type DocumentOf, fromDocument, toDocument } from './fields.ts'

/** The parameters that go through a flow. An absent one is an absent field, an empty one an empty string. */
export const carriedTypes = {
  clientId: 'string?',
  redirectUri: 'string?',
  scope: 'string?',
  state: 'string?',
} as const

/** What is audited of whoever sent a request. */
export const senderTypes = { address: 'string?', userAgent: 'string?' } as const

export const requesterTypes = {
  ...senderTypes,
  uiLocales: 'string?',
  acceptLanguage: 'string?',
  byAdmin: 'bool?',
} as const

export type RequesterFields = DocumentOf<typeof requesterTypes>

export function toRequesterFields({ isAdmin, ...requester }: Requester): RequesterFields {
  return toDocument({ ...requester, byAdmin: isAdmin }, requesterTypes)
}

export function fromRequesterFields(fields: RequesterFields): Requester {
  const { byAdmin, ...requester } = fromDocument(fields, requesterTypes)
  return {
    address: undefined,
    userAgent: undefined,
    ...requester,
    ...(byAdmin !== undefined && { isAdmin: byAdmin }),
  }
}
