import { appendCarried, CARRIED } from '../ports/carried-query.ts'
import type { CapturedRequest, CarriedParameters } from '../ports/index.ts'

/** What a verification link carries (4.6). */
export interface VerificationLink {
  token: string
  carried: CarriedParameters
  signature: string
}

/** The parameters of the mailed address. */
export const SIGNED: readonly string[] = [
  'token',
  ...CARRIED.map(([, name]) => name),
  'authorize_sig',
]

/** Whether a name is one of them as some parsers read it: `state[]`. */
export function isBracketed(name: string): boolean {
  return SIGNED.some((signed) => name.startsWith(`${signed}[`))
}

/** The four parameters that a link carries (4.6), out of the request that it will finish. */
export function carriedBy({ params }: CapturedRequest): CarriedParameters {
  const carried: CarriedParameters = {}
  if (typeof params['client_id'] === 'string') carried.clientId = params['client_id']
  if (typeof params['redirect_uri'] === 'string') carried.redirectUri = params['redirect_uri']
  if (typeof params['scope'] === 'string') carried.scope = params['scope']
  if (typeof params['state'] === 'string') carried.state = params['state']
  return carried
}

/** The query of the mailed address (4.6). */
export function linkQuery({ token, carried, signature }: VerificationLink): string {
  const query = appendCarried(new URLSearchParams({ token }), carried)
  query.set('authorize_sig', signature)
  return query.toString()
}

/** Absent and empty are two different things. */
export function isSameCarried(a: CarriedParameters, b: CarriedParameters): boolean {
  return (
    a.clientId === b.clientId &&
    a.redirectUri === b.redirectUri &&
    a.scope === b.scope &&
    a.state === b.state
  )
}
