import { z } from 'zod'
import type { CapturedRequest, PendingLogin } from '../../ports/index.ts'
import { carriedBy } from '../../ports/carried-query.ts'
import { type DocumentOf, fromDocument, hasTypes, toDocument } from './fields.ts'
import { carriedTypes } from './request-types.ts'

const types = {
  id: 'string',
  accountId: 'string',
  email: 'string|undefined',
  passwordDigest: 'string',
  /** JSON: any name of a parameter is stored as it is, be it with dots or dollars. */
  captured: 'string',
  browserHash: 'string|undefined',
  createdAt: 'date',
  continuedAt: 'date|undefined',
  purgeAt: 'date',
} as const

const { scope: _, ...searchedTypes } = carriedTypes

export interface PendingLoginDocument
  extends DocumentOf<typeof types>, DocumentOf<typeof searchedTypes> {
  /** The name of the turn that set `continued_at`. */
  continued_by?: string
}

export function toLoginDocument(login: PendingLogin): PendingLoginDocument {
  return {
    ...toDocument({ ...login, captured: JSON.stringify(login.captured) }, types),
    ...toDocument(carriedBy(login.captured), searchedTypes),
  }
}

/** `undefined`: it was damaged. */
export function toPendingLogin(document: PendingLoginDocument): PendingLogin | undefined {
  if (!hasTypes(document, types)) return undefined
  const captured = parseCapturedRequest(document.captured)
  return captured && { ...fromDocument(document, types), captured }
}

/** What a wrong login would be made of is looked at; the rest the provider checks again when it resumes. */
const Captured = z.object({
  params: z.object({}),
  login: z.object({ accountId: z.string(), ts: z.number() }),
})

const isCapturedRequest = (value: unknown): value is CapturedRequest =>
  Captured.safeParse(value).success

/** `undefined`: it was damaged. */
function parseCapturedRequest(json: string): CapturedRequest | undefined {
  try {
    const captured: unknown = JSON.parse(json)
    return isCapturedRequest(captured) ? captured : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
