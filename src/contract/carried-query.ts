import type { CapturedRequest } from '../store/captured-request.ts'
import type { CarriedParameters } from './requests.ts'

type CarriedName = 'client_id' | 'redirect_uri' | 'scope' | 'state'

/** The carried parameters, and their names on the wire (4.6). */
export const CARRIED: readonly [field: keyof CarriedParameters, name: CarriedName][] = [
  ['clientId', 'client_id'],
  ['redirectUri', 'redirect_uri'],
  ['scope', 'scope'],
  ['state', 'state'],
]

/** Appends the carried parameters under their names on the wire; what is absent stays absent. */
export function appendCarried(query: URLSearchParams, carried: CarriedParameters): URLSearchParams {
  for (const [field, name] of CARRIED) {
    const value = carried[field]
    if (value !== undefined) query.append(name, value)
  }
  return query
}

/** The query of the address of a form that goes on with them, in this language. */
export function formQuery(carried: CarriedParameters, uiLocales: string | undefined): string {
  const query = appendCarried(new URLSearchParams(), carried)
  if (uiLocales !== undefined) query.append('ui_locales', uiLocales)
  return query.size > 0 ? `?${query.toString()}` : ''
}

/** Reads them out of a form, a query or a record; what is absent stays absent. */
export function carriedFrom(fields: {
  get(name: CarriedName): string | null | undefined
}): CarriedParameters {
  const carried: CarriedParameters = {}
  for (const [field, name] of CARRIED) {
    const value = fields.get(name) ?? undefined
    if (value !== undefined) carried[field] = value
  }
  return carried
}

/** The four parameters that a link carries (4.6), out of the request that it will finish. */
export function carriedBy({ params }: CapturedRequest): CarriedParameters {
  const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined)
  return carriedFrom({ get: (name) => textOf(params[name]) })
}

/** Absent and empty are two different things. */
export function isSameCarried(a: CarriedParameters, b: CarriedParameters): boolean {
  return CARRIED.every(([field]) => a[field] === b[field])
}
