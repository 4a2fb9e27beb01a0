import type { CarriedParameters } from './requests.ts'

/** The carried parameters, and their names on the wire (4.6). */
export const CARRIED: readonly [field: keyof CarriedParameters, name: string][] = [
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

/** Reads them out of a form or a query; what is absent stays absent. */
export function carriedFrom(fields: {
  get(name: string): string | null | undefined
}): CarriedParameters {
  const carried: CarriedParameters = {}
  for (const [field, name] of CARRIED) {
    const value = fields.get(name) ?? undefined
    if (value !== undefined) carried[field] = value
  }
  return carried
}
