/** What a host asks for in its code, outside of a request of a browser. */
import type { RequestParameters, Requester, User } from '../contract/index.ts'
import { isJsonObject, must } from '../errors.ts'

/** The requester, where no browser is behind it. */
export const NOBODY: Requester = { address: undefined, userAgent: undefined }

/** An account and parameters as a host names them, in JavaScript perhaps. */
export function askedByHost(method: string, who: User | string, parameters: RequestParameters) {
  const { id: accountId }: { id?: unknown } = typeof who === 'string' ? { id: who } : Object(who)
  must(typeof accountId === 'string', `${method}: name a user, or its id`)
  must(isJsonObject(parameters), `${method}: parameters must be an object`)
  for (const [name, value] of Object.entries(parameters))
    must(typeof value === 'string', `${method}: ${name} must be a text`)
  return { accountId, parameters }
}
